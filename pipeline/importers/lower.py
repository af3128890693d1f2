"""A float graph with a quantization for every tensor to the integer graph.

The real value of an integer q is s (q - z). A sum of products of x and w has the scale s_x s_w, and
becomes y's by a fixed-point multiplication with s_x s_w / s_y: Jacob et al., Quantization and
Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference (2018), eq. 5–7.
Weights are symmetric with a scale for each output channel, biases int32 of the sum's scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite, prod
from typing import Any

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.exponential import exponentials
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators import pairwise
from pipeline.graph.operators.along import ArgMax, LogSoftmax, Softmax, WideSoftmax
from pipeline.graph.operators.conv2d import Conv2d, Dense, TransposeConv
from pipeline.graph.operators.lookup import Interpolate, Lookup
from pipeline.graph.operators.pairwise import Add, Multiply, Prelu
from pipeline.graph.operators.placing import Concat, Pad, Rearrange, Reshape
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d, MinPool2d
from pipeline.graph.requant import Mean
from pipeline.graph.state import assigned_late
from pipeline.graph.tensor import DType, IntArray, Tensor, within_int8
from pipeline.importers import float_nodes as nodes
from pipeline.importers import float_whole, lower_recurrent, lower_whole
from pipeline.importers.float_graph import Affine, FloatGraph, Node, node_fields
from pipeline.importers.float_nodes import Floats
from pipeline.importers.float_pairs import Hidden, Maximum, Minimum, Order, Quotient
from pipeline.importers.functions import Composed
from pipeline.importers.scales import (
    INT8,
    INT32,
    LOGARITHM,
    PROBABILITY,
    SHARE,
    constant_affine,
    fixed_point,
    largest_sum,
    lines,
    log_softmax,
    lookup_table,
    stored_limits,
    stored_weights,
    wide_softmax,
)

ADD_SHIFT = 20


class Lowering:
    """Collects the integer graph of ``graph``, whose tensors have the quantizations ``affines``."""

    def __init__(self, graph: FloatGraph, affines: Mapping[str, Affine]) -> None:
        self.graph, self.affines = graph, dict(affines)
        self.tensors: dict[str, Tensor] = {}
        self.constants: dict[str, IntArray] = {}
        self.operators: list[Operator] = []
        for name in graph.inputs:
            self.declare(name, graph.shapes[name])
            if graph.limits:
                self.tensors[name] = self.tensors[name].spread(graph.limits)
        for of in graph.states:
            self.declare(of.read, graph.shapes[of.read])

    def run(self) -> Graph:
        for node in self.graph.nodes:
            self.declare(node.output, self.graph.shapes[node.output])
            RULES[type(node)](self, node)
        states, kept = self.graph.states, [self.tensors[of.read] for of in self.graph.states]
        return Graph(
            self.graph.name, self.tensors, assigned_late(self.operators, states), self.constants,
            self.graph.inputs, self.graph.outputs, states=states,
            initial={each.name: np.full(each.shape, each.zero_point) for each in kept},
        )  # fmt: skip

    def declare(self, name: str, shape: tuple[int, ...]) -> None:
        affine = self.affines[name]
        self.tensors[name] = Tensor(name, shape, affine.dtype, (affine.scale,), affine.zero_point)

    def constant(
        self, name: str, values: IntArray, dtype: DType, scale: Floats, zero_point: int = 0
    ) -> str:
        scales = tuple(float(each) for each in scale)
        self.tensors[name] = Tensor(name, values.shape, dtype, scales, zero_point)
        self.constants[name] = values
        return name

    def emit(self, kind: type[Operator], node: Node, **fields: Any) -> None:
        given = {"name": node.name, "inputs": node.inputs, "output": node.output}
        self.operators.append(kind(**{**given, **fields}))

    def computed(self, node: nodes.Function) -> None:
        """A function of one element: of 8 bits a table, of 16 lines between entries of one; leaky
        ReLUs of these are exact, changes of quantization and clips products with 1."""
        source, target = self.affines[node.inputs[0]], self.affines[node.output]
        body = node.body if node.clip is None else Composed.of("clip", *node.clip).after(node.body)
        if source.bits == 8:
            self.emit(Lookup, node, table=lookup_table(body, source, target))
        elif {step.function for step in body.steps} <= {"identity", "clip"}:
            ends = [step.constants for step in body.steps if step.constants]
            clip = (max(low for low, _ in ends), min(high for _, high in ends)) if ends else None
            one = self.constant(f"{node.name}.one", np.ones(1, np.int64), INT8, np.ones(1))
            requant = fixed_point(node, [source.scale / target.scale], source.reach)
            given = {"parameters": (one,), "operands": (node.inputs[0], one), "requant": requant}
            self.emit(Multiply, node, **given, clip=stored_limits(clip, target))
        elif [step.function for step in body.steps] == ["leaky_relu"]:
            ones = (1,) * len(self.tensors[node.output].shape)
            slope = np.full(ones, body.steps[0].constants[0])
            _slopes(self, nodes.Slopes(**node_fields(node), constant=slope))
        else:
            more = 16 - target.bits
            fine = Affine(target.scale / (1 << more), target.zero_point << more, 16)
            self.emit(Interpolate, node, table=lines(body, source, fine), narrow=7 + more)

    def kept(self, node: Node) -> tuple[str, ...]:
        """Return the inputs, brought to the output's quantization where theirs differs."""
        target = self.affines[node.output]
        found: list[str] = []
        for index, name in enumerate(node.inputs):
            if self.affines[name] != target or name in found:  # twice: the second is a copy
                name = self.brought(name, target, f"{node.name}.in{index}")
            found.append(name)
        return tuple(found)

    def brought(self, name: str, target: Affine, label: str) -> str:
        """``name`` in another quantization, as ``label``."""
        self.affines[label] = target
        self.declare(label, self.tensors[name].shape)
        body = Composed.of("identity")
        self.computed(nodes.Function(name=label, inputs=(name,), output=label, body=body))
        return label

    def brought_from(self, made: Affine, kind: type[Operator], node: Node, **fields: Any) -> None:
        """Return what makes ``made``, brought to the output's quantization if that differs."""
        if self.affines[node.output] == made:
            clip = {"clip": self.clip(node)} if node.clips else {}
            return self.emit(kind, node, **clip, **fields)
        between = f"{node.name}.between"
        self.affines[between] = made
        self.declare(between, self.tensors[node.output].shape)
        self.emit(kind, replace(node, name=between, output=between), **fields)
        given: dict[str, Any] = {**node_fields(node), "inputs": (between,), "clip": node.clip}
        self.computed(nodes.Function(**given, body=Composed.of("identity")))

    def weighted(self, node: nodes.Weighted, kind: type[Operator], **fields: Any) -> None:
        """A sum of products with weights and a bias."""
        source, target = self.affines[node.inputs[0]], self.affines[node.output]
        weights, steps = stored_weights(node, source.scale)
        bias = np.rint(node.bias / (source.scale * steps))
        if np.abs(bias).max(initial=0) > INT32.maximum:
            raise node.refuse("its biases do not fit int32 in steps of input scale x weight scale")
        largest = largest_sum(weights, bias, self.tensors[node.inputs[0]])
        requant = fixed_point(node, source.scale * steps / target.scale, largest)
        stored, zero = within_int8(node.where or node.name, weights)
        parameters = (
            self.constant(f"{node.name}.weight", stored, INT8, steps, zero),
            self.constant(f"{node.name}.bias", bias.astype(np.int64), INT32, source.scale * steps),
        )
        self.emit(
            kind, node, parameters=parameters, clip=self.clip(node), requant=requant, **fields
        )

    def clip(self, node: Node) -> tuple[int, int] | None:
        """Return the stored integers of a fused activation."""
        return stored_limits(node.clip, self.affines[node.output])


def lower(graph: FloatGraph, affines: Mapping[str, Affine]) -> Graph:
    """Return the integer graph.

    Args:
        graph: simplified (``float_passes``).
        affines: of every activation.

    Raises:
        ThimbleError: a quantization that no fixed-point multiplier can express.
    """
    for name in graph.shapes:
        if name not in affines:
            raise ThimbleError(f"{graph.name}: {name} has no quantization")
        affine = affines[name]
        low, high = affine.ends
        if not (isfinite(affine.scale) and affine.scale > 0 and low <= affine.zero_point <= high):
            raise ThimbleError(
                f"{graph.name}: {name} has scale {affine.scale} and zero point "
                f"{affine.zero_point}; a positive scale and an {affine.dtype} zero point are needed"
            )
    return Lowering(graph, affines).run()


def _alike(kind: type[Operator], fields: str) -> Callable[[Lowering, Any], None]:
    """Make a rule for an operator that is told by ``fields`` of the node, as that is."""

    def lowered(low: Lowering, node: Node) -> None:
        given = {name: getattr(node, name) for name in fields.split()}
        if isinstance(node, nodes.Weighted):
            return low.weighted(node, kind, **given)
        if node.clips:
            given["clip"] = low.clip(node)
        low.emit(kind, node, inputs=low.kept(node) if node.keeps else node.inputs, **given)

    return lowered


def _average(low: Lowering, node: nodes.AveragePool | nodes.GlobalMean) -> None:
    source, target = low.affines[node.inputs[0]], low.affines[node.output]
    size = low.tensors[node.inputs[0]].shape[:2]
    fields: dict[str, Any] = {"kernel": size, "stride": size}
    if isinstance(node, nodes.AveragePool):
        fields = {"kernel": node.kernel, "stride": node.stride, "padding": node.padding}
        if source == target or any(node.padding):  # windows of several sizes
            return low.brought_from(source, AveragePool2d, node, requant=Mean(), **fields)
    count = prod(fields["kernel"])
    fixed = fixed_point(node, [source.scale / (count * target.scale)], source.steps * count)
    low.emit(AveragePool2d, node, clip=low.clip(node), requant=fixed, **fields)


def _operands(low: Lowering, node: nodes.Binary) -> tuple[tuple[str, str], tuple[str, ...]]:
    """(operands, parameters); a constant operand is quantized here."""
    if node.constant is None:
        first, second = node.inputs
        return (first, second), ()
    affine = node.constant_given or constant_affine(node.constant)
    stored = np.clip(np.rint(node.constant / affine.scale) + affine.zero_point, *affine.ends)
    name, kind = f"{node.name}.constant", affine.dtype
    low.affines[name] = affine
    low.constant(name, stored.astype(np.int64), kind, np.array([affine.scale]), affine.zero_point)
    return (node.inputs[0], name), (name,)


def _sum(low: Lowering, node: nodes.Sum | Order) -> None:
    """Both operands brought to one scale."""
    operands, parameters = _operands(low, node)
    scales = [low.affines[name].scale for name in operands]
    shift = ADD_SHIFT + 8 - max(low.affines[name].bits for name in operands)
    twice, shifted = 2 * max(scales), 256.0 * (1 << ADD_SHIFT)
    requants = tuple(fixed_point(node, [scale / twice], shifted) for scale in scales)
    given = {"parameters": parameters, "operands": operands, "operand_requants": requants}
    if isinstance(node, Order):
        return low.emit(pairwise.Order, node, left_shift=shift, **given)
    ratio = twice / ((1 << shift) * low.affines[node.output].scale)
    result = fixed_point(node, [ratio], shifted)
    low.emit(Add, node, left_shift=shift, requant=result, clip=low.clip(node), **given)


def _product(low: Lowering, node: nodes.Product) -> None:
    operands, parameters = _operands(low, node)
    one, other = (low.affines[name] for name in operands)
    inputs = node.inputs
    if one.reach * other.reach >= 2.0**31:  # of 16 bits: one in steps twice as large
        one = Affine(2 * one.scale, 0, 16)
        operands = low.brought(operands[0], one, f"{node.name}.in0"), operands[1]
        inputs = (operands[0], *inputs[1:])
    ratio = one.scale * other.scale / low.affines[node.output].scale
    requant = fixed_point(node, [ratio], one.reach * other.reach)
    given = {"parameters": parameters, "operands": operands, "clip": low.clip(node)}
    low.emit(Multiply, node, inputs=inputs, requant=requant, **given)


def _slopes(low: Lowering, node: nodes.Slopes) -> None:
    operands, parameters = _operands(low, node)
    source, slope = (low.affines[name] for name in operands)
    ratio = source.scale / low.affines[node.output].scale
    low.emit(
        Prelu, node, operands=operands, parameters=parameters, clip=low.clip(node),
        requant=fixed_point(node, [ratio], source.reach),
        below=fixed_point(node, [ratio * slope.scale], source.reach * 255.0),
    )  # fmt: skip


def _extreme(low: Lowering, node: Maximum | Minimum) -> None:
    kept = replace(node, inputs=low.kept(node), constant_given=low.affines[node.output])
    operands, parameters = _operands(low, kept)
    kind = pairwise.Maximum if isinstance(node, Maximum) else pairwise.Minimum
    given = {"operands": operands, "parameters": parameters, "clip": low.clip(node)}
    low.emit(kind, kept, **given)


def _hidden(low: Lowering, node: Hidden) -> None:
    """Return the smaller one of each element and a constant: the least integer, or the greatest."""
    target, name = low.affines[node.output], f"{node.name}.constant"
    stored = np.where(node.places, *target.ends)
    low.constant(name, stored, target.dtype, np.array([target.scale]), target.zero_point)
    inputs = low.kept(node)
    given = {"operands": (*inputs, name), "parameters": (name,)}
    low.emit(pairwise.Minimum, node, inputs=inputs, **given)


def _quotient(low: Lowering, node: Quotient) -> None:
    """A product with what is 1 by the second, in 16 bits."""
    first, second = node.inputs
    source, name = low.affines[second], f"{node.name}.reciprocal"
    if source.bits != 8:
        raise node.refuse("a division by an activation of 16 bits is not supported")
    low.affines[name] = Affine(1 / (source.scale * 32767), 0, 16)
    low.declare(name, low.tensors[second].shape)
    table = lookup_table(Composed.of("reciprocal"), source, low.affines[name])
    low.operators.append(Lookup(name, (second,), name, table=table))
    fields = {**node_fields(node), "inputs": (first, name), "clip": node.clip}
    _product(low, nodes.Product(**fields))


def _padded(low: Lowering, node: nodes.Padded) -> None:
    target = low.affines[node.output]
    ends = stored_limits((node.value, node.value) if node.value else None, target)
    low.emit(Pad, node, inputs=low.kept(node), padding=node.padding, value=ends and ends[0])


def _softmax(low: Lowering, node: nodes.SoftmaxOver) -> None:
    source, kind, made = low.affines[node.inputs[0]], Softmax, PROBABILITY
    given: dict[str, Any] = {"exponentials": exponentials(source.scale)}
    if isinstance(node, nodes.LogSoftmaxOver):
        if source.bits == 16:
            raise node.refuse("a logarithm of 16 bits is not supported")
        kind, made, given = LogSoftmax, LOGARITHM, log_softmax(source.scale)
    elif source.bits == 16:
        kind, made, given = WideSoftmax, SHARE, wide_softmax(source.scale)
    low.brought_from(made, kind, node, **given)


RULES: Mapping[type[Node], Callable[[Lowering, Any], None]] = {
    nodes.Convolution: _alike(Conv2d, "stride dilation padding groups"),
    nodes.Linear: _alike(Dense, ""),
    nodes.MaxPool: _alike(MaxPool2d, "kernel stride padding dilation"),
    nodes.MinPool: _alike(MinPool2d, "kernel stride padding dilation"),
    nodes.AveragePool: _average,
    nodes.GlobalMean: _average,
    nodes.Sum: _sum,
    Order: _sum,
    nodes.Product: _product,
    nodes.Slopes: _slopes,
    Maximum: _extreme,
    Minimum: _extreme,
    Quotient: _quotient,
    Hidden: _hidden,
    nodes.Concatenation: _alike(Concat, "axis"),
    nodes.Padded: _padded,
    nodes.Rearranged: _alike(Rearrange, "shape axes starts steps repeats"),
    nodes.Reshaped: _alike(Reshape, "shape"),
    float_whole.TransposedConvolution: _alike(TransposeConv, "size before stride dilation groups"),
    float_whole.Places: _alike(ArgMax, "axis least"),
    nodes.SoftmaxOver: _softmax,
    nodes.LogSoftmaxOver: _softmax,
    nodes.Function: Lowering.computed,
    **lower_whole.RULES,
    **lower_recurrent.RULES,
}
