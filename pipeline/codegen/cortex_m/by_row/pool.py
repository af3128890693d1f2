"""Pooling of a row in blocks, channel by channel, or sums of it."""

from __future__ import annotations

from pipeline.codegen.c.expressions import product, total
from pipeline.codegen.cortex_m.by_row.rows import pooled_rows
from pipeline.codegen.cortex_m.operators.pool import pooled, repeated
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import layouts, out_row
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.kernels.cortex_m.by_row.pool import Along, RowPool
from pipeline.kernels.row_layout import BLOCK


def compute(job: Job) -> None:
    op, rows, tensor = job.operator(Pool2d), pooled_rows(job), job.source
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
        "cortex_m/by_row/pool",
        views if job.partial else {**views, "scratch": job.scratch},
        kind="row",
        rows=len(rows),
        type=rows[0].type,
        given=source,
        words=words,
        word_step=source.at(BLOCK) if words > 1 else 0,
        left=left,
        start=tensor.zero_point * source.columns - least,
        along=Along.of(op),
        edges=edges,
        line_words=Along.of(op).words(source.columns, target.columns),
        count=f"{len(rows)} * {inside}",
        made=made,
        partial=job.partial,
        vacant=repeated(op.reduction.start(tensor.dtype), left),
        **pooled(job, op),
    )


WRITERS = {"cortex_m.row_pool": compute}
