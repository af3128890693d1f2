"""TensorFlow Lite files: int8 networks, computed exactly as tflite-micro computes them, and float
ones, whose weights may be of 8 bits or float16.

An operator is one function and one entry in the ``OPERATORS`` of a ``tflite_*`` module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers import (
    tflite_elementwise,
    tflite_moves,
    tflite_pooling,
    tflite_products,
    tflite_reals,
    tflite_recurrent,
    tflite_shapes,
    tflite_slices,
    tflite_softmax,
    tflite_states,
    tflite_tables,
    tflite_volumes,
)
from pipeline.importers.base import Imported, increasing
from pipeline.importers.tflite_builder import ANY, Builder
from pipeline.importers.tflite_folding import fold
from pipeline.importers.tflite_model import FileModel, FileTensor, printable
from pipeline.importers.tflite_operator import Entry
from pipeline.importers.unsupported import Missing, unsupported

if TYPE_CHECKING:  # it needs PyTorch, whose import takes seconds
    from pipeline.importers.float_graph import FloatGraph

ENTRIES: Mapping[str, Entry] = {
    **tflite_products.OPERATORS,
    **tflite_volumes.OPERATORS,
    **tflite_pooling.OPERATORS,
    **tflite_elementwise.OPERATORS,
    **tflite_shapes.OPERATORS,
    **tflite_slices.OPERATORS,
    **tflite_moves.OPERATORS,
    **tflite_softmax.OPERATORS,
    **tflite_tables.OPERATORS,
    **tflite_reals.OPERATORS,
    **tflite_recurrent.OPERATORS,
    **tflite_states.OPERATORS,
}


WIDE = (
    *("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN"),
    *("ADD", "MUL", "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "CONCATENATION", "PAD", "DEQUANTIZE"),
    *("SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "UNPACK", "TRANSPOSE"),
    *tflite_moves.OPERATORS,
    *("LOGISTIC", "TANH", "LEAKY_RELU", "RELU", "RELU6", "SOFTMAX", "SUB", "SUM"),
    *("ABS", "MAXIMUM", "MINIMUM"),
    *tflite_states.OPERATORS,
)
"""Operators on int16, too."""
SIGNED = (
    "L2_NORMALIZATION",
    "ABS",
    "RSQRT",
    "SQUARED_DIFFERENCE",
    "HARD_SWISH",
    "LEAKY_RELU",
    "PRELU",
    "MEAN",
    "SUM",
)
"""Operators whose arithmetic is known of int8 alone."""


@dataclass(frozen=True)
class TFLite(Imported):
    """A network in the .tflite file ``path``.

    Attributes:
        input_range: the real values that 0 and 255 of the data mean; empty: the data's values are
            the input's integers, 128 less for int8, and of a float network 0 to 1.
        stacked: a CONV_3D is one convolution of its images, one above the other, which can run in
            place: with more products, as rows between have weights of 0.
    """

    input_range: tuple[float, ...] = ()
    stacked: bool = False

    def graph(self) -> Graph:
        """Raises ThimbleError: what in the file is not supported, and where it is."""
        content = self.content()
        try:
            name = printable(Path(self.path).stem)
            graph = _graph(name, _opened(content), self.outputs, self.step, self.stacked)
            return self.ranged(graph, self.input_range) if self.input_range else graph
        except ThimbleError as error:
            raise ThimbleError(f"{self.path}: {error}") from None

    def float_graph(self) -> FloatGraph | None:
        try:
            model = _opened(self.content())
            results = model.outputs(self.outputs)
            needed = list(_needed(model, results))
            if not _is_float(model, needed):
                return None
            from pipeline.importers import onnx, tflite_float  # with them comes onnx

            file = tflite_float.translated(model, results, needed, ENTRIES)
            name, limits = printable(Path(self.path).stem), increasing(self.input_range or (0, 1))
            return onnx.entered(name, file, limits)[0]
        except ThimbleError as error:
            raise ThimbleError(f"{self.path}: {error}") from None


def _opened(content: bytes) -> FileModel:
    model = FileModel(content)
    fold(model, ENTRIES)
    return model


def supported() -> dict[str, str]:
    """Operators and in what form each is supported, for messages and the documentation."""
    return {name: " ".join((getdoc(entry.build) or "").split()) for name, entry in ENTRIES.items()}


def _is_float(model: FileModel, needed: Sequence[int]) -> bool:
    """Check whether all that operators make is float."""
    made = [index for each in needed for index in model.operator(each)[2]]
    given = (each.index for each in model.inputs(needed))
    kinds = {model.tensor(index).type for index in (*given, *made)}
    return "FLOAT32" in kinds and not kinds & {"INT8", "UINT8", "INT16"}


def _graph(name: str, model: FileModel, outputs: Sequence[str], step: bool, stacked: bool) -> Graph:
    results = model.outputs(outputs)
    needed = list(_needed(model, results))
    given = model.inputs(needed)
    build = Builder(len(model.data), [each.index for each in given], [e.index for e in results])
    build.step, build.stacked = step, stacked
    for each in given:
        if each.type != "FLOAT32":  # else QUANTIZE makes the input
            try:
                build.inputs[each.index] = build.target(each, ANY).name
            except ThimbleError as error:
                raise ThimbleError(f"the model's input: {error}") from None
    missing = Missing()
    for index in needed:
        kind, reads, makes = model.operator(index)
        try:
            if kind not in ENTRIES or missing.lost.isdisjoint(reads):
                _add(build, model, index)
        except ThimbleError as error:
            known = (each for each in reads if each in build.made and each not in missing.made)
            before = [model.tensor(each).name for each in known]
            missing.add(kind, f"operator {index}", error, before)
            missing.made.update(makes)
        missing.lost.update(each for each in makes if not _assumed(build, model, reads, each))
    missing.checked()
    for each in results:
        if each.index in build.reals:
            tflite_reals.ended(build, each)
        elif each.index not in build.outputs:
            build.outputs[each.index] = build.source(each, (*ANY, "INT32", "INT64")).name
    return build.graph(name, *tflite_states.paired(build, tflite_states.initial_values(model)))


def _assumed(build: Builder, model: FileModel, reads: Sequence[int], index: int) -> bool:
    """Take what an operator makes of ``reads`` for what the file says, whatever the operator is."""
    with suppress(ThimbleError):
        if any(each in build.made for each in reads) and index not in build.made:
            build.target(model.tensor(index), ("INT8", "INT16"))
    return index in build.made or index in build.reals or index in build.handles


def _needed(model: FileModel, results: Iterable[FileTensor]) -> Iterator[int]:
    """Return the operators that the outputs, and variables, depend on, in the file's order.

    What computes a shape that the file states anyway is not among them.
    """
    wanted, found = {each.index for each in results}, []
    for index in reversed(range(model.operators)):
        kind, inputs, outputs = model.operator(index)
        if wanted & set(outputs) - model.held or kind == tflite_states.ASSIGN:
            reads = ENTRIES[kind].reads if kind in ENTRIES else 0
            wanted |= set(inputs[: reads or None])
            found.append(index)
    return reversed(found)


def _add(build: Builder, model: FileModel, index: int) -> None:
    """Read operator ``index``; any complaint says which one it is."""
    kind = model.operator(index)[0]
    where = f"operator {index}, {kind}"
    if kind not in ENTRIES:
        raise ThimbleError(f"{where}: {unsupported(kind)}")
    try:
        node = model.node(index)
        build.label = node.layer
        if kind in SIGNED and any(tensor.unsigned for tensor in node.outputs):
            raise ThimbleError("of uint8 it is not supported: convert the model again, to int8")
        build.kinds = ("INT8", "INT16") if kind in WIDE else ("INT8",)
        where += f" (makes {', '.join(tensor.name for tensor in node.outputs[:2])})"
        if kind == "DEQUANTIZE" and node.output.index not in build.results:
            tflite_reals.dequantized(build, node)
        elif kind == "QUANTIZE" and node.input(0).index in build.reals:
            tflite_reals.quantized(build, node)
        else:
            real = tflite_reals.computes(build, node)
            rule = tflite_reals.rule if real else ENTRIES[kind].build
            rule(build, node, ENTRIES[kind].values(node))
    except ThimbleError as error:
        raise ThimbleError(f"{where}: {error}") from None
