"""Quotients of two int8 activations, comparisons, and what they choose.

Source of the arithmetic: tflite-micro's comparisons.cc and select.cc. Its div.cc is within a step,
but for the smallest dividends, for which it shifts by more than the 31 bits that there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pairwise import Add, Multiply, Order
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import IntArray
from pipeline.importers.tflite_builder import Builder, Real
from pipeline.importers.tflite_elementwise import every, operand, paired
from pipeline.importers.tflite_model import Node
from pipeline.importers.tflite_operator import Options, fused
from pipeline.importers.tflite_pooling import same_quantization

HALF = FixedPoint.of([0.5])


def div(build: Builder, node: Node, options: Options) -> None:
    """Divide two int8 activations within a step of tflite-micro, as a product with what is 1 by the
    second, of 16 bits; of real numbers between DEQUANTIZE and QUANTIZE. By 0 is as by a step."""
    pair = node.input(0), node.input(1)
    first, second = (build.source(each) for each in pair)
    scale, steps = 1 / (pair[1].scale * 32767), every(build, pair[1])
    table = np.rint(32767 / np.where(steps == 0, 1, steps)).astype(int).tolist()
    inverse = build.fresh(f"{node.name}_inverse", second.shape, "int16", (scale,), 0).name
    name = f"{build.label}_inverse"
    build.operators.append(Lookup(name, (second.name,), inverse, table=tuple(table)))
    requant = FixedPoint.of([pair[0].scale * scale / node.output.scale])
    given = {"requant": requant, "clip": fused(options, node.output)}
    paired(Multiply, build, (first.name, inverse), build.target(node.output).name, **given)


def compared(build: Builder, node: Node) -> tuple[str, IntArray]:
    """Find an activation, and for its integers 1, -1 or 0: the order of what is compared."""
    pair = node.input(0), node.input(1)
    first, second = (FixedPoint.of([each.scale]) for each in pair)
    given: dict[str, Any] = {"operand_requants": (first, second)}
    moving = [each for each in pair if not (each.data and each.size == 1)]
    if len(moving) == 1 and not moving[0].data:
        values = (np.broadcast_to(every(build, each), 256) for each in pair)
        return build.source(moving[0]).name, Order("", (), "", **given).joined(*values)
    name = f"{node.output.name}_order"
    made = build.fresh(name, node.output.shape, "int8", (1.0,), 0).name
    paired(Order, build, (operand(build, pair[0]), operand(build, pair[1])), made, **given)
    return made, np.arange(-128, 128)


def selected(build: Builder, node: Node, condition: Real) -> None:
    """Add what is chosen of two tensors of one quantization, each times 0 or 1."""
    parts, sides = list[str](), (node.input(1), node.input(2))
    for number, each in enumerate(sides):
        same_quantization(each, node.output)
        holds = condition.values.astype(bool) ^ bool(number)
        source, name = build.tensors[condition.source], f"{node.output.name}_{number}"
        factor = build.mapped(source, tuple(holds.astype(int).tolist()), 0, (1.0,)).name
        quantization = "int8", (each.scale,), each.zero_point
        parts.append(build.fresh(name, node.output.shape, *quantization).name)
        pair = factor, operand(build, each)
        paired(Multiply, build, pair, parts[-1], requant=FixedPoint.of([1.0]))
    target, given = build.target(node.output).name, {"operand_requants": (HALF, HALF)}
    requant = FixedPoint.of([2.0**-19])
    paired(Add, build, (parts[0], parts[1]), target, requant=requant, **given)
