"""Pooling, four channels at a time: a word of each pixel; or a row in blocks channel by channel, or
sums of it."""

from math import prod
from typing import Any

from pipeline.codegen.c import window
from pipeline.codegen.c.expressions import product, total
from pipeline.codegen.cortex_m.by_row.rows import pooled_rows
from pipeline.codegen.cortex_m.operators import gathered
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import layouts, out_row
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operator import limits
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.kernels.by_row import BLOCK
from pipeline.kernels.cortex_m.gathered import in_any_order
from pipeline.kernels.cortex_m.pool import Along, Pool, RowPool


def compute(job: Job) -> None:
    op, form = job.operator(Pool2d), job.form
    if in_any_order(form):
        gathered.call(job, "cortex_m/gathered_pool", made=Pool().made(form), **pooled(job, op))
        return
    view = job.rows_view()
    windows = Windows.of(job, view)
    rows, columns = windows.axes(job.box)
    job.call(
        "cortex_m/pool", {"in": view, "out": job.out(ring_axes=1)},
        {**window.named("y", job.box[0]), "in_y": view.box[0].start},
        rows=rows, columns=columns, window=windows, channels=job.part.extent.const,
        **pooled(job, op),
    )  # fmt: skip


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
    """Return a word of it, from byte ``first`` on."""
    return f"0x{(byte & 255) * (0x01010101 >> 8 * first << 8 * first):08X}u"


def by_row(job: Job) -> None:
    op, rows, tensor = job.operator(Pool2d), pooled_rows(job), job.source
    along = Along.of(op)
    source, target = layouts(job, RowPool(), rows)
    words, left = divmod(source.columns, BLOCK)
    block, more = target.pixels, target.columns - target.full
    # alike blocks of the output: how many, pixels of each; where they begin; bytes to the next
    # block, channel and pixel
    made = [(target.full // block, block, 0, target.at(block), block, 1)]
    made += [(1, more, target.at(target.full), 1, more, 1)] if more else []
    if block == 1:
        made = [(1, target.columns, 0, 1, 1, target.channels)]
    # where sums are of all columns, bytes from -128 on are counted from there
    least = tensor.dtype.minimum * BLOCK * (words + (left > 0))
    ends = -op.padding[2], op.kernel[1] - op.padding[2]
    edges = ends[0] < 0 or (target.columns - 1) * op.stride[1] + ends[1] > source.columns
    begin, end = (total(product("{x}", op.stride[1]), at) for at in ends)
    inside = f"(nn_min({end}, {source.columns}) - nn_max({begin}, 0))" if edges else op.kernel[1]
    views = {"out": job.out() if job.partial else out_row(job), **{row.name: row for row in rows}}
    job.call(
        "cortex_m/by_row/pool", views if job.partial else {**views, "scratch": job.scratch},
        kind="row", rows=len(rows), type=rows[0].type, given=source, words=words, left=left,
        word_step=source.at(BLOCK) if words > 1 else 0, edges=edges, made=made, partial=job.partial,
        start=tensor.zero_point * source.columns - least, count=f"{len(rows)} * {inside}",
        along=along, line_words=along.words(source.columns, target.columns),
        vacant=repeated(op.reduction.start(tensor.dtype), left), **pooled(job, op),
    )  # fmt: skip


WRITERS = {"cortex_m.pool": compute, "cortex_m.row_pool": by_row}
