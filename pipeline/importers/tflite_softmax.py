"""SOFTMAX and LOG_SOFTMAX over the last axis."""

from __future__ import annotations

from pipeline.errors import ThimbleError
from pipeline.graph.exponential import DIFFERENCE_BITS, exponentials
from pipeline.graph.operators.along import LogSoftmax, Softmax, WideSoftmax
from pipeline.importers.scales import log_softmax as log_softmax_fields
from pipeline.importers.scales import wide_softmax
from pipeline.importers.tflite_builder import Builder
from pipeline.importers.tflite_model import Node
from pipeline.importers.tflite_operator import Entry, Options
from pipeline.importers.tflite_tables import prescribed


def softmax(build: Builder, node: Node, options: Options) -> None:
    """Output of scale 1/256 and zero point -128, as TFLite prescribes, of int16 1/32768 and 0."""
    source, beta = build.source(node.input(0)), options["beta"]
    if node.input(0).type == "INT16":
        prescribed(node.output, 2.0**-15, 0)
        target = build.target(node.output, ("INT16",))
        given = wide_softmax(node.input(0).scale * beta)
        return build.emit(WideSoftmax, [source.name], target.name, **given)
    prescribed(node.output, 1 / 256, -128)
    if not beta * node.input(0).scale * (1 << (31 - DIFFERENCE_BITS)) > 1:
        raise ThimbleError(f"its beta of {beta:g} is too small for its input's scale")
    target = build.target(node.output)
    table = exponentials(node.input(0).scale, beta)
    build.emit(Softmax, [source.name], target.name, exponentials=table)


def log_softmax(build: Builder, node: Node, options: Options) -> None:
    """Output of scale 1/16 and zero point 127, as TFLite prescribes."""
    source = build.source(node.input(0))
    prescribed(node.output, 1 / 16, 127)
    given = log_softmax_fields(node.input(0).scale)
    build.emit(LogSoftmax, [source.name], build.target(node.output).name, **given)


OPERATORS = {
    "SOFTMAX": Entry(softmax, "SoftmaxOptions", "beta:f32"),
    "LOG_SOFTMAX": Entry(log_softmax),
}
