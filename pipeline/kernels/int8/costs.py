"""Costs of portable C: of each kind of it by what it does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from math import prod

from pipeline.graph.operator import Operator
from pipeline.graph.operators.along import ArgMax, MatMul, Normalize, Softmax
from pipeline.graph.operators.conv2d import TransposeConv
from pipeline.graph.operators.recurrent import Recurrent, TimeFilter
from pipeline.graph.operators.resize import Resize
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, made, positions, products

COSTS: dict[str, Counts] = {
    "accumulate": {"product": 3.24, "gathered": 43.9, "output": 4.43, "narrow output": 12.7},
    "add": {"element": 43.7},
    "conv2d": {"product": 9.71, "run": 57.7, "output": 0.0},
    "copy": {"element": 1.35, "pixel": 1.78},
    "dense": {"product": 9.06, "output": 35.2},
    "depthwise": {"product": 10.7, "product of a column": 8.22, "tap": 71.0, "output": 38.0},
    "lookup": {"element": 4.85},
    "multiply": {"element": 30.1},
    "normalize": {"element": 55.8, "row": 1110.0},
    "pool": {"value": 9.93, "tap": 1.7, "output": 28.3},
    "recurrent": {"product": 9.06, "output": 35.2},
    "resize": {"product": 8.51, "pixel": 48.8},
    "softmax": {"element": 65.1, "row": 115.0},
}
"""Cycles of what each C does, on a Cortex-M4 without flash waits: fitted to what simulated layers
take (tests/kernels/cycles.json)."""

LIGHT = {
    kind: {what: 0.6 * cycles for what, cycles in COSTS[kind].items()}
    for kind in ("copy", "lookup", "pool")
}
"""Costs of what multiplies nothing, on cores that multiply slowly."""

OWN_COSTS: dict[str, Mapping[str, Counts]] = {
    "cortex-m7": COSTS | {"depthwise": {"product": 10.1, "product of a column": 7.7, "tap": 22.3}},
    "cortex-m0plus": {
        **COSTS, **LIGHT, "add": {"element": 117.0}, "recurrent": {"product": 4.05, "output": 110.0}
    },
    "avr": {
        **COSTS, **LIGHT,
        "conv2d": {"product": 5.5, "run": 6.0, "output": 72.0},
        "dense": {"product": 6.5, "output": 87.0},
        "recurrent": {"product": 6.5, "output": 87.0},
        "pool": {"value": 7.6, "tap": 1.0, "output": 60.0},
    },
}  # fmt: skip
"""Costs by core, where a kind takes less in proportion, or more: an M7's fitted to MobileNetV1's
calls with a card (docs/swap.md), an M0+'s sums, of 64-bit products, to a keyword network's, an
AVR's to layers with weights in SRAM on an Uno and a Mega."""

BY_PAIRS = {"recurrent": {"product": 2.25, "output": 75.0}}
"""Where the core multiplies two pairs of 16 bits at once: an LSTM's of 64 units and GRUs' of 96."""

PRODUCT_CYCLES = COSTS["conv2d"]["product"]


@cache
def costs_of(core: str, pairs: bool) -> Mapping[str, Counts]:
    return {**OWN_COSTS.get(core, COSTS), **(BY_PAIRS if pairs else {})}


def word(op: Operator | type[Operator]) -> str:
    """Return what kernels for this kind of operator are called: ``average_pool2d``."""
    kind = op if isinstance(op, type) else type(op)
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def counted(form: Form) -> tuple[str, Counts]:
    """Return the C that computes ``form``, and what it does."""
    op, elements = form.op, made(form)
    if not op.slides:
        family = word(op)
        if isinstance(op, Softmax):
            return "softmax", {"element": elements, "row": elements // form.out.extents[-1]}
        if isinstance(op, Resize):
            taps, pixels = prod(op.taps), elements // form.out.extents[-1]
            return family, {"product": elements * taps, "pixel": pixels}
        if isinstance(op, ArgMax):
            return "pool", {"value": elements * form.source.shape[op.axis], "output": elements}
        if isinstance(op, Normalize):
            return family, {"element": elements, "row": elements / op.count(form.graph.tensors)}
        if isinstance(op, MatMul):
            return "dense", {"product": products(form), "output": elements}
        if isinstance(op, Recurrent):
            sums = 2 * op.gates * form.target.size
            return "recurrent", {"product": op.macs(form.graph.tensors), "output": sums}
        if isinstance(op, TimeFilter):
            return "dense", {"product": op.macs(form.graph.tensors), "output": elements}
        if isinstance(op, TransposeConv):
            number = op.macs(form.graph.tensors) * elements / form.target.size
            depth = form.source.shape[2] // op.groups
            return "conv2d", {"product": number, "run": number / depth}
        if op.element_wise:
            return family if family in COSTS else "add", {"element": elements}
        return "copy", {"element": elements, "pixel": elements // form.out.extents[-1]}
    if len(form.target.shape) < 3:
        return "dense", {"product": products(form), "output": elements}
    taps, channels = prod(positions(form)), form.out.extents[2]
    pixels = elements // channels
    if not op.weighted and taps == 1:
        return "lookup", {"element": elements}
    if not op.weighted:
        return "pool", {"value": products(form), "tap": pixels * taps, "output": elements}
    depth = form.graph.tensors[op.parameters[0]].shape[3]
    if depth == 1:
        product = "product of a column" if positions(form)[1] == 1 else "product"
        return "depthwise", {product: products(form), "tap": pixels * taps, "output": elements}
    if form.partial:
        gathered = pixels * taps * form.given.extents[2]
        narrow = elements * (form.out.bits < 32)
        counts = {"product": products(form), "gathered": gathered, "output": elements}
        return "accumulate", {**counts, "narrow output": narrow}
    runs = positions(form)[0] if getattr(op, "groups", 1) == 1 else taps
    return "conv2d", {"product": products(form), "run": elements * runs, "output": elements}
