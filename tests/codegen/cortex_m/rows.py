"""Plans that compute images some rows at a time, with scratch for fast kernels."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np

from pipeline.graph.access import clipped
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import (
    Buffer,
    Compute,
    Lin,
    Loop,
    Plan,
    Slice,
    Step,
    Track,
    packed,
)
from tests.codegen.int8.support import apart

SCRATCH_BYTES = 1 << 14


def in_rows(graph: Graph, seed: int) -> Plan:
    """Every image one to three rows a step: by a loop, the last round of which may have fewer, or
    by steps that name just the rows that they read."""
    rng, plan = np.random.default_rng(seed), with_scratch(apart(graph))
    steps: list[Step] = []
    for op in graph.operators:
        whole_steps = [
            s for s in plan.tracks[0].steps if isinstance(s, Compute) and s.op == op.name
        ]
        shape = graph.tensors[op.output].shape
        if len(shape) < 3 or op.fixed_shape:
            steps += whole_steps
        elif rng.random() < 0.5:
            steps.append(_loop(op, shape, whole_steps[0], int(rng.integers(1, 4))))
        else:
            steps += _one_by_one(op, graph, plan, whole_steps[0], int(rng.integers(1, 4)))
    return replace(plan, tracks=(Track("cpu", tuple(steps)),), strategy="rows")


def with_scratch(plan: Plan) -> Plan:
    top = ceil(max(b.extent[1] for b in plan.buffers if b.memory == "sram") / 8) * 8
    scratch = Buffer(
        "scratch", "", "sram", (SCRATCH_BYTES,), 8, packed((SCRATCH_BYTES,), 8, top), "scratch"
    )
    tracks = tuple(replace(t, steps=tuple(map(_scratched, t.steps))) for t in plan.tracks)
    return replace(plan, buffers=(*plan.buffers, scratch), tracks=tracks)


def _scratched(step: Step) -> Step:
    if isinstance(step, Loop):
        return replace(step, body=tuple(map(_scratched, step.body)))
    return replace(step, scratch=("scratch",)) if isinstance(step, Compute) else step


def _loop(op: Operator, shape: tuple[int, ...], step: Compute, rows: int) -> Loop:
    low = (Lin(0, (("row", rows),)), 0, 0)
    return Loop(
        "row",
        ceil(shape[0] / rows),
        (replace(step, out=Slice(op.output, low, (rows, *shape[1:]))),),
    )


def _one_by_one(op: Operator, graph: Graph, plan: Plan, step: Compute, rows: int) -> list[Compute]:
    shape, found = graph.tensors[op.output].shape, []
    for row in range(0, shape[0], rows):
        box = ((row, min(row + rows, shape[0])), *((0, n) for n in shape[1:]))
        read = {}
        for operand in op.reads(graph.tensors):
            region = clipped(operand.region(box), graph.tensors[operand.tensor].shape)
            if operand.tensor in graph.constants or any(a >= b for a, b in region):
                continue
            before = read.get(operand.tensor, region)
            read[operand.tensor] = tuple(
                (min(a, c), max(b, d)) for (a, b), (c, d) in zip(before, region, strict=True)
            )
        ins = tuple(
            _slice(piece.buffer, read[piece.buffer]) if piece.buffer in read else piece
            for piece in step.ins
        )
        found.append(replace(step, out=_slice(op.output, box), ins=ins))
    return found


def _slice(name: str, box: tuple[tuple[int, int], ...]) -> Slice:
    return Slice(name, tuple(a for a, _ in box), tuple(b - a for a, b in box))
