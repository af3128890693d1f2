"""Pooling, four channels at a time: a word of each pixel."""

from __future__ import annotations

from math import prod
from typing import Any

from pipeline.codegen.c import window
from pipeline.codegen.cortex_m.operators import gathered
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operator import limits
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.kernels.cortex_m.gathered import in_any_order
from pipeline.kernels.cortex_m.pool import Pool


def compute(job: Job) -> None:
    op, form = job.operator(Pool2d), job.form
    if in_any_order(form):
        view, made = job.source_view, Pool().made(form)
        windows, shared = Windows.of(job, view), pooled(job, op)
        gathered.call(job, "cortex_m/gathered_pool", view, windows, made=made, **shared)
        return
    view = job.rows_view()
    windows = Windows.of(job, view)
    rows, columns = windows.axes(job.box)
    job.call(
        "cortex_m/pool",
        {"in": view, "out": job.out(ring_axes=1)},
        {**window.named("y", job.box[0]), "in_y": view.box[0].start},
        rows=rows,
        columns=columns,
        window=windows,
        channels=job.part.extent.const,
        **pooled(job, op),
    )


def pooled(job: Job, op: Pool2d) -> dict[str, Any]:
    """Describe for a template how values are compared or added up, and what ends that."""
    source, end = job.source, ending(job.program, op)
    low, high = limits(job.target, op.clip)
    return {
        "pick": op.reduction.pick,
        "empty": repeated(op.reduction.start(source.dtype)),
        "low": repeated(low) if low > source.dtype.minimum else "",
        "high": repeated(high) if high < source.dtype.maximum else "",
        "halves": {n: f"nn_{n}{'' if source.dtype.signed else '_u16'}" for n in ("low", "high")},
        # where sums are not counted, no tap is outside
        "zeros": 0 if end.counted else prod(op.kernel) * source.zero_point,
        "ending": end,
    }


def repeated(byte: int, first: int = 0) -> str:
    """A word of it, from byte ``first`` on."""
    return f"0x{(byte & 255) * (0x01010101 >> 8 * first << 8 * first):08X}u"


WRITERS = {"cortex_m.pool": compute}
