"""SOFTMAX, LOG_SOFTMAX and L2_NORMALIZATION over the last axis."""

from __future__ import annotations

from math import sqrt

from pipeline.errors import ThimbleError
from pipeline.graph.exponential import DIFFERENCE_BITS, exponentials
from pipeline.graph.operators.along import LogSoftmax, Normalize, Softmax, WideSoftmax
from pipeline.graph.requant import FixedPoint
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


def l2_normalization(build: Builder, node: Node, options: Options) -> None:
    """Over the last axis, rounded once: to the bit where squares add up to less than 2**21, beyond
    which TFLite rounds twice. Output of scale 1/128 and zero point 0, as TFLite prescribes."""
    source, depth = build.source(node.input(0)), build.source(node.input(0)).shape[-1]
    prescribed(node.output, 1 / 128, 0)
    if options["activation"]:
        raise ThimbleError("its fused activation is not supported")
    rows = (1, source.size // depth, depth)
    target = build.target(node.output, shape=rows)
    requant = FixedPoint.of([128 / sqrt(depth)])
    given = {"centred": False, "requant": requant}
    build.emit(Normalize, [build.shaped(source.name, rows)], target.name, **given)
    build.finish(node.output, target)


OPERATORS = {
    "L2_NORMALIZATION": Entry(l2_normalization, "L2NormOptions", "activation:i8"),
    "SOFTMAX": Entry(softmax, "SoftmaxOptions", "beta:f32"),
    "LOG_SOFTMAX": Entry(log_softmax),
}
