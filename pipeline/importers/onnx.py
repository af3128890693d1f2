"""ONNX files: float networks, or quantized to int8 by QuantizeLinear and DequantizeLinear.

A quantized network keeps the scales and integers of the file. ONNX says that operators between
DequantizeLinear and QuantizeLinear compute on real numbers; here, as on every microcontroller, a
31-bit fixed-point factor takes the integers of the sum to those of the result: in each operator
that differs from onnxruntime by one unit at most, where the real number is near the middle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers import (
    onnx_arithmetic,
    onnx_functions,
    onnx_integers,
    onnx_norms,
    onnx_pooling,
    onnx_quantized,
    onnx_recurrent,
    onnx_shapes,
    onnx_slices,
    onnx_weighted,
)
from pipeline.importers.base import LARGEST_BYTES, Imported, increasing
from pipeline.importers.builder import Builder
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.float_passes import simplified
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Moves, Value
from pipeline.importers.lower import lower
from pipeline.importers.onnx_call import Call, Constant, Item, Stored, Table
from pipeline.importers.onnx_constants import FOLDS, folded, given
from pipeline.importers.onnx_decomposed import with_norms
from pipeline.importers.onnx_external import ExternalFiles
from pipeline.importers.onnx_file import FileNode, OnnxFile, read
from pipeline.importers.onnx_front import checked, without_idle
from pipeline.importers.onnx_names import shown
from pipeline.importers.quantizations import completed, quantizations
from pipeline.importers.scales import PIXEL
from pipeline.importers.unsupported import Missing, unsupported

INPUT = "input"

OPERATORS: Table = {
    **onnx_weighted.OPERATORS,
    **onnx_pooling.OPERATORS,
    **onnx_norms.OPERATORS,
    **onnx_arithmetic.OPERATORS,
    **onnx_shapes.OPERATORS,
    **onnx_slices.OPERATORS,
    **onnx_functions.OPERATORS,
    **onnx_quantized.OPERATORS,
    **onnx_recurrent.OPERATORS,
    **onnx_integers.OPERATORS,
}
KNOWN = {"Constant", *OPERATORS, *FOLDS}


@dataclass(frozen=True)
class Onnx(Imported):
    """The network in the .onnx file ``path``, and in the files beside it that it names.

    Attributes:
        input_range: what the network takes for the raw values 0 and 255 of the data; of an input
            of integers, these are the data's values themselves, 128 less for int8.
        sizes: of the axes that the file leaves open, in order; the batch's is 1.
        state: inputs that a call doesn't get, since they are what an output was in the call before:
            ``h:hn`` for each; empty: by names and shapes; ``none``: none are. They begin as zeros.
    """

    input_range: tuple[float, ...] = (0.0, 1.0)
    sizes: tuple[int, ...] = ()
    state: tuple[str, ...] = ()

    def graph(self) -> Graph:
        network, in_units = self._read()
        if not network.given:
            raise ThimbleError(f"{self.path}: a float network: it has to be quantized")
        try:
            graph = lower(network, completed(network))
        except ThimbleError as error:
            raise ThimbleError(f"{self.path}: {error}") from None
        return self.ranged(graph, self.input_range) if in_units else graph

    def float_graph(self) -> FloatGraph | None:
        network, _ = self._read()
        return None if network.given else network

    def _read(self) -> tuple[FloatGraph, bool]:
        """The network, and whether its input's integers have real units, of ``input_range``."""
        content, limits = self.content(), increasing(self.input_range)
        try:
            beside = ExternalFiles(Path(self.path).parent, LARGEST_BYTES)
            file = read(content, beside, self.outputs, self.sizes, self.state)
            file = replace(file, step=self.step)
            return entered(Path(self.path).stem, file, limits)
        except ThimbleError as error:
            raise ThimbleError(f"{self.path}: {error}") from None


def supported() -> list[str]:
    """Names of the operators."""
    return sorted(OPERATORS)


def entered(name: str, file: OnnxFile, limits: tuple[float, float]) -> tuple[FloatGraph, bool]:
    """The simplified graph, with the file's quantizations if it has any, and whether its input has
    real units: of integers, and of pixels that the network scales before it quantizes them, there
    are none. Images are (1, c, h, w) in the file, or (1, h, w, c) where it transposes them first.
    """
    units = all(each.kind == "float32" for each in file.inputs)
    file = with_norms(file)
    graph = _simplified(name, file, limits)
    if units and graph.given and not quantizations(graph).keys() >= set(graph.inputs):
        scaled = _simplified(name, file, limits, pixels=True)
        return without_idle(replace(checked(scaled, limits), limits=limits)), False
    return without_idle(graph if graph.given else replace(graph, limits=limits)), units


def _simplified(
    name: str, file: OnnxFile, limits: tuple[float, float], pixels: bool = False
) -> FloatGraph:
    try:
        graph = _walked(name, file, limits, pixels)
    except Moves:
        try:
            graph = _walked(
                name, file, limits, pixels, not file.channels_first, file.channels_first
            )
        except ThimbleError:
            graph = _walked(name, file, limits, pixels, moving=True)
    return simplified(graph)


def _walked(
    name: str,
    file: OnnxFile,
    input_range: tuple[float, float],
    pixels: bool,
    last: bool = False,
    moving: bool = False,
) -> FloatGraph:
    """``pixels``: a quantized network, too, takes the data's values, which mean ``input_range``."""
    builder = Builder(name, moving, file.step)
    items: dict[str, Item] = {key: Constant(value) for key, value in file.constants.items()}
    quantized, (low, high) = _is_quantized(file), input_range
    sources = [INPUT] if len(file.inputs) == 1 else [shown(each.name) for each in file.inputs]
    for given_name, each in zip(sources, file.inputs, strict=True):
        builder.here, builder.label = "the input", given_name
        source = builder.source(given_name, each.shape, last)
        if each.kind != "float32":
            items[each.name] = Stored(source, None, each.kind == "uint8")
        elif quantized and not pixels:
            items[each.name] = source
        else:
            if quantized:
                builder.given[source.tensor] = PIXEL
            builder.label = "range"
            body = Composed.of("affine", (high - low) / 255, low)
            items[each.name] = builder.function(source, body)
    for each, _ in file.states:
        builder.here = builder.label = shown(each.name)
        items[each.name] = builder.source(builder.label, each.shape, last=False)
    missing, used = Missing(), {name for node in file.nodes for name in node.inputs}
    for node in file.nodes:
        builder.here, builder.label = node.where, node.label
        reads = [read for read in node.inputs if isinstance(items.get(read), (Value, Stored))]
        try:
            if node.refused or node.operator not in KNOWN or missing.lost.isdisjoint(node.inputs):
                _take(builder, node, items, file.opset)
                continue
        except ThimbleError as error:
            if isinstance(error, Moves) and not moving:
                raise
            before = (file.names.get(n, shown(n)) for n in reads if n not in missing.made)
            missing.add(shown(node.operator), node.where, error, before)
        missing.made.update(node.outputs)
        shapes = file.shapes() if reads and not used.isdisjoint(node.outputs) else {}
        for made in filter(None, node.outputs):
            if made in shapes and made not in items:
                items[made] = builder.source(f"missing {made}", shapes[made], last)
            missing.lost |= {made} - items.keys()
    missing.checked()
    results = [_result(items, output) for output in file.outputs]
    for each, made in file.states:
        builder.label = f"{shown(each.name)}.kept"
        builder.state(_result(items, each.name), _result(items, made))
    return builder.graph(sources, results, signals=not file.channels_first)


def _result(items: Mapping[str, Item], name: str) -> Value:
    result = items.get(name)
    result = result.value if isinstance(result, Stored) else result
    if not isinstance(result, Value):
        raise ThimbleError(f"the output {shown(name)} does not depend on the input")
    return result


def _is_quantized(file: OnnxFile) -> bool:
    """Check whether activations are quantized: weights alone may be, for size."""
    return any(
        (node.operator == "QuantizeLinear" and node.inputs and node.inputs[0] not in file.constants)
        or node.operator.startswith(("QLinear", "QGemm"))
        for node in file.nodes
    )  # fmt: skip


def _take(builder: Builder, node: FileNode, items: dict[str, Item], opset: int) -> None:
    """Import one node."""
    if node.refused is not None:
        raise node.refused
    name = shown(node.operator)
    unknown = builder.refuse(f"the operator {name} is {unsupported(name)}")
    if node.operator not in KNOWN:
        raise unknown
    for each in node.inputs:
        if each and each not in items:
            raise builder.refuse(f"reads {shown(each)}, which nothing before it makes")
    found = tuple(items[each] if each else None for each in node.inputs)
    call = Call(builder, node, found, opset)
    if node.operator == "Constant":
        result: Item | list[Item] = given(call)
    elif found and all(isinstance(each, (Constant, type(None))) for each in found):
        rule = onnx_quantized.OPERATORS.get(node.operator)
        result = folded(call) if rule is None else rule(call)
    elif node.operator not in OPERATORS:
        raise unknown
    else:
        result = OPERATORS[node.operator](call)
    if not any(node.outputs):
        raise builder.refuse("has no output")
    results = result if isinstance(result, list) else [result]
    for name, made in zip(node.outputs, results, strict=False):  # some are for training only
        if name and name in items:
            raise builder.refuse(f"makes {shown(name)}, which is there already")
        items[name] = made
