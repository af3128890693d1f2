"""SOFTMAX over the last axis."""

from __future__ import annotations

from pipeline.errors import ThimbleError
from pipeline.graph.exponential import DIFFERENCE_BITS, exponentials
from pipeline.graph.operators.softmax import Softmax
from pipeline.importers.tflite_builder import Builder
from pipeline.importers.tflite_model import Node
from pipeline.importers.tflite_operator import Entry, Options


def softmax(build: Builder, node: Node, options: Options) -> None:
    """int8 output of scale 1/256 and zero point -128, as TFLite prescribes."""
    source, beta = build.source(node.input(0)), options["beta"]
    if (node.output.scale, node.output.zero_point) != (1 / 256, -128):
        raise ThimbleError("its output has not the scale 1/256 and the zero point -128")
    if not beta * node.input(0).scale * (1 << (31 - DIFFERENCE_BITS)) > 1:
        raise ThimbleError(f"its beta of {beta:g} is too small for its input's scale")
    target = build.target(node.output)
    table = exponentials(node.input(0).scale, beta)
    build.operators.append(Softmax(node.name, (source.name,), target.name, exponentials=table))


OPERATORS = {"SOFTMAX": Entry(softmax, "SoftmaxOptions", "beta:f32")}
