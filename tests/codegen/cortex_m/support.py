"""Code for a core with the DSP extension, run natively by its portable twin."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np

from pipeline.codegen import generate
from pipeline.graph.access import clipped
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Buffer, Compute, Lin, Loop, Plan, Slice, Step, Track, packed
from pipeline.plan.well_formed import statements
from pipeline.schedules import rows
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import lay, needed
from pipeline.search.joint.segment import on_demand
from pipeline.search.layouts import in_blocks
from pipeline.search.view.rows import Units
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import Native, apart, host


def core(cpu: str = "cortex-m4", sram_bytes: int = 1 << 24) -> Hardware:
    return replace(host(sram_bytes), core="cortex_m", cpu=cpu)


def twin(folder: Path, graph: Graph, plan: Plan | None = None, *, sanitize: bool = True) -> Native:
    plan = plan or Ordinary().plan(graph, core())
    files = generate(graph, plan, core(), {})
    return Native(folder, graph, plan, sanitize=sanitize, files=files)


def fast(native: Native, template: str) -> int:
    """Count its kernels that are the fast ones of that kind, by what their comments say."""
    says = {"conv2d": "2 channels at a time|, one row(?!, channel)",
            "depthwise": "each with its rows by itself",
            "dense": "dense.* at a time", "elements": "a word of each at a time",
            "pool": ", 4 channels at a time"}  # fmt: skip
    return len(re.findall(rf".*({says[template]}).*", native.files["model.c"]))


def coarser(plan: Plan, least: int) -> Plan:
    """Rounded sums with steps of ``least`` or more."""
    buffers = (replace(b, step=max(b.step, least)) if b.step > 1 else b for b in plan.buffers)
    return replace(plan, buffers=tuple(buffers))


def all_rows(
    graph: Graph, hardware: Hardware, operators: Sequence[Operator], streamed: bool = False
) -> tuple[rows.RowStep | rows.Arrive, ...]:
    """On demand, in one segment, whatever a search would make of it."""
    units = Units(graph, hardware, operators, streamed)
    order = on_demand(units, 0, [graph.output])
    return tuple(units.units[number].step for number in order)


def by_rows(graph: Graph, hardware: Hardware, pixels: Mapping[str, int] | None = None) -> Plan:
    """Rows on demand; ``pixels``: of a block, by the tensors whose rows lie in blocks; if not
    said, of those that are faster so."""
    operators, whole = needed(graph), frozenset([graph.output])
    order = all_rows(graph, hardware, operators)
    if pixels is None:
        pixels = in_blocks(graph, operators, hardware, whole)
    regions = [rows.InputRows(graph.input), rows.Rows(order, whole, pixels)]
    return lay(regions, Draft(graph, hardware)).plan("rows")


def kernels(plan: Plan) -> dict[str, str]:
    """By operator."""
    return {s.op: s.kernel for s in statements(plan) if isinstance(s, Compute)}


SCRATCH_BYTES = 1 << 14


def in_rows(graph: Graph, seed: int) -> Plan:
    """Every image one to three rows a step, by a loop whose last round has fewer, or one by one."""
    rng, plan = np.random.default_rng(seed), with_scratch(apart(graph))
    steps: list[Step] = []
    for step in plan.tracks[0].steps:
        assert isinstance(step, Compute)
        shape = step.out.size
        if len(shape) < 3 or graph.operator(step.op).fixed_shape:
            steps.append(step)
        elif rng.random() < 0.5:
            rows = int(rng.integers(1, 4))
            tile = Slice(step.out.buffer, (Lin(0, (("row", rows),)), 0, 0), (rows, *shape[1:]))
            steps.append(Loop("row", ceil(shape[0] / rows), (replace(step, out=tile),)))
        else:
            steps += _one_by_one(graph.operator(step.op), graph, step, int(rng.integers(1, 4)))
    return replace(plan, tracks=(Track("cpu", tuple(steps)),), strategy="rows")


def _one_by_one(op: Operator, graph: Graph, step: Compute, rows: int) -> list[Compute]:
    """Steps that name just the rows that they read."""
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


def with_scratch(plan: Plan) -> Plan:
    top = ceil(max(b.extent[1] for b in plan.buffers if b.memory == "sram") / 8) * 8
    place = packed((SCRATCH_BYTES,), 8, top)
    scratch = Buffer("scratch", "", "sram", (SCRATCH_BYTES,), 8, place, "scratch")
    tracks = tuple(replace(t, steps=tuple(map(_scratched, t.steps))) for t in plan.tracks)
    return replace(plan, buffers=(*plan.buffers, scratch), tracks=tracks)


def _scratched(step: Step) -> Step:
    if isinstance(step, Loop):
        return replace(step, body=tuple(map(_scratched, step.body)))
    return replace(step, scratch=("scratch",)) if isinstance(step, Compute) else step
