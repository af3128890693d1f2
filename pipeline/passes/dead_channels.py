"""Leave out channels that decide nothing: their weights are all zero, or nobody has weights for
them. A constant one goes on in the biases of its readers.

In MLPerf Tiny's visual wake words half the multiply-accumulates are on such channels.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.passes._channels import Node, Values, components, constant_channels, taps
from pipeline.passes._edit import consumers, edited

Kept = dict[str, NDArray[np.bool_]]
"""The channels of each activation that stay."""


def apply(graph: Graph) -> Graph:
    values, readers = constant_channels(graph), consumers(graph)

    def stuck(node: Node) -> bool:
        """Check whether some reader cannot do without this channel."""
        name, k = node
        return any(
            not _absorbs(graph, op, k, values)
            for op in readers[name]
            if op.mixes_channels(graph.tensors)
        )

    kept: Kept = {
        name: np.ones(tensor.shape[-1], dtype=np.bool_) for name, tensor in graph.tensors.items()
    }
    for group in components(graph, stuck):
        going = Counter(name for name, _ in group)
        if all(kept[name].sum() > number for name, number in going.items()):  # something stays
            for name, k in group:
                kept[name][k] = False
    return graph if all(each.all() for each in kept.values()) else _cut(graph, kept, values)


def _absorbs(graph: Graph, op: Operator, k: int, values: dict[str, Values]) -> bool:
    """Does ``op`` do without input channel ``k``: no weights for it, or a constant for its bias?"""
    if not taps(graph, op)[:, :, k].any():
        return True
    value, zero = values[op.inputs[0]][k], graph.tensors[op.inputs[0]].zero_point
    if np.isnan(value) or value == zero:
        return bool(value == zero)
    padded = isinstance(op, Conv2d) and any(op.padding)
    wide = graph.tensors[op.parameters[1]].dtype.bits == 32
    fixed = isinstance(getattr(op, "requant", None), FixedPoint)
    return wide and fixed and not padded


def _cut(graph: Graph, kept: Kept, values: dict[str, Values]) -> Graph:
    tensors: dict[str, Tensor] = {}
    constants: dict[str, IntArray] = {}
    operators = list[Operator]()
    users = [name for op in graph.operators for name in op.parameters]
    for name in (op.output for op in graph.operators):
        tensor = graph.tensors[name]
        tensors[name] = replace(tensor, shape=(*tensor.shape[:-1], int(kept[name].sum())))
    for op in graph.operators:
        if isinstance(op, Conv2d | Dense) and (
            op.mixes_channels(graph.tensors) or op.depthwise(graph.tensors)
        ):
            out, inside = kept[op.output], kept[op.inputs[0]]
            if not (out.all() and inside.all()):
                arrays = _parameters(graph, op, out, inside, values[op.inputs[0]])
                names = []
                for name, array in zip(op.parameters, arrays, strict=True):
                    new = name if users.count(name) == 1 else f"{name}.{op.name}"
                    tensors[new] = _constant(graph.tensors[name], new, array, out)
                    constants[new] = array
                    names.append(new)
                op = _narrowed(op, tuple(names), out, inside)
        operators.append(op)
    return edited(graph, operators, tensors, constants)


def _parameters(
    graph: Graph,
    op: Conv2d | Dense,
    out: NDArray[np.bool_],
    inside: NDArray[np.bool_],
    held: Values,
) -> tuple[IntArray, IntArray]:
    """Weights and biases without what is gone; what was constant is added to the biases."""
    weights, bias = (graph.constants[name] for name in op.parameters)
    if op.depthwise(graph.tensors):
        return weights[out], bias[out]
    zero = graph.tensors[op.inputs[0]].zero_point
    constant = np.nan_to_num(held[~inside] - zero).astype(np.int64)
    added = (taps(graph, op)[:, :, ~inside].sum(axis=1) * constant).sum(axis=1)
    return weights[out][..., inside], (bias + added)[out]


def _constant(tensor: Tensor, name: str, array: IntArray, out: NDArray[np.bool_]) -> Tensor:
    scale = tensor.scale
    if len(scale) == len(out):
        scale = tuple(s for s, stays in zip(scale, out, strict=True) if stays)
    return replace(tensor, name=name, shape=array.shape, scale=scale)


def _narrowed(
    op: Conv2d | Dense,
    parameters: tuple[str, ...],
    out: NDArray[np.bool_],
    inside: NDArray[np.bool_],
) -> Conv2d | Dense:
    requant = op.requant
    if isinstance(requant, FixedPoint):
        requant = requant.chosen(np.flatnonzero(out).tolist())
    op = replace(op, parameters=parameters, requant=requant)
    if isinstance(op, Conv2d) and op.groups > 1:
        op = replace(op, groups=int(inside.sum()))
    return op
