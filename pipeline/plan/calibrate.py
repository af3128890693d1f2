"""Choose what one unit of a rounded accumulator stands for, from the sums that frames give.

The plan is run with exact sums in place of every accumulator whose step is open. The step is the
smallest with which none of the sums that were held at any time would have saturated: what a larger
one rounds off, every contribution pays. See docs/decisions/0010.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Box, DType, IntArray
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import Interpreter
from pipeline.plan.unrolled import walk
from pipeline.plan.vocabulary import Buffer, Plan


def needs_calibration(plan: Plan) -> bool:
    return any(buffer.step == 0 for buffer in plan.buffers)


def rounds(plan: Plan) -> bool:
    """Check whether the plan's outputs may differ from the graph's."""
    return any(buffer.step > 1 for buffer in plan.buffers)


def calibrated(plan: Plan, graph: Graph, frames: Iterable[IntArray]) -> Plan:
    """``plan`` with every open step chosen; ``frames`` have the shape of the input tensor.

    Raises:
        ThimbleError: when steps are open and there are no frames.
    """
    if not needs_calibration(plan):
        return plan
    largest = {buffer.name: -1 for buffer in plan.buffers if buffer.step == 0}
    room = roomy(plan)  # one that does not fit is calibrated, too
    for frame in frames:
        observer = _Observer(room, graph, frame)
        for event in walk(plan):
            observer.step(event)
        for name, value in observer.largest.items():
            largest[name] = max(largest[name], value)
    if min(largest.values()) < 0:
        raise ThimbleError(f"{plan.graph}: accumulators are calibrated on frames; there are none")
    buffers = tuple(
        replace(b, step=step_for(largest[b.name], b.bits)) if b.step == 0 else b
        for b in plan.buffers
    )
    return replace(plan, buffers=buffers)


def step_for(largest: int, bits: int) -> int:
    """Choose it for sums up to ``largest``. At least 2: a step of 1 says that every sum of any
    input fits."""
    return max(2, -(-largest // DType(bits, signed=True).maximum))


class _Observer(Interpreter):
    """Keeps open accumulators aside, exact, and their greatest magnitudes."""

    def __init__(self, plan: Plan, graph: Graph, frame: IntArray) -> None:
        self.sums: dict[str, IntArray] = {}
        self.largest: dict[str, int] = {}
        super().__init__(plan, graph, frame)

    def read(self, buffer: Buffer, box: Box) -> IntArray:
        if buffer.step:
            return super().read(buffer, box)
        return self.sums[buffer.name][tuple(slice(start, stop) for start, stop in box)]

    def write(self, buffer: Buffer, box: Box, values: IntArray) -> None:
        if buffer.step:
            super().write(buffer, box, values)
            return
        held = self.sums.setdefault(buffer.name, np.zeros(buffer.shape, np.int64))
        held[tuple(slice(start, stop) for start, stop in box)] = values
        magnitude = int(np.abs(values).max(initial=0))
        self.largest[buffer.name] = max(self.largest.get(buffer.name, 0), magnitude)

    def added(self, op: Operator, out: Buffer, held: IntArray, more: IntArray) -> IntArray:
        return super().added(op, replace(out, step=1) if out.step == 0 else out, held, more)

    def finished(self, acc: Buffer, held: IntArray) -> IntArray:
        return held if acc.step == 0 else super().finished(acc, held)
