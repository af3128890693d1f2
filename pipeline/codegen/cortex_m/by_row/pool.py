"""Pooling with windows, of a row in blocks, channel by channel."""

from __future__ import annotations

from pipeline.codegen.cortex_m import step
from pipeline.codegen.cortex_m.by_row.depthwise import Tail
from pipeline.codegen.cortex_m.by_row.rows import layouts, out_row, pooled_rows
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job
from pipeline.graph.operator import limits
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.kernels.cortex_m.by_row.layout import BLOCK
from pipeline.kernels.cortex_m.by_row.pool import RowPool


def compute(job: Job) -> None:
    op, rows = job.operator(Pool2d), pooled_rows(job)
    source, target = layouts(job, RowPool(), rows)
    tensor, end, out = job.tensor(op.inputs[0]), ending(job.program, op), out_row(job)
    words, pad, (kernel_h, kernel_w) = source.columns // BLOCK, op.padding[2], op.kernel
    low, high = limits(job.target, op.clip)
    last = (target.columns - 1) * op.stride[1] - pad + kernel_w
    job.call(
        "cortex_m/by_row/pool",
        about(job, op),
        {"out": out, **{row.name: row for row in rows}, "scratch": step.scratch(job)},
        {},
        job.apart,
        "row",
        type=f"{tensor.dtype}_t",
        widen="s8" if tensor.dtype.signed else "u8",
        maximum=not isinstance(op, AveragePool2d),
        rows=len(rows),
        given=source,
        made=target,
        words=words,
        word_step=source.at(BLOCK) if words > 1 else 0,
        tail=Tail.of(source) or Tail(BLOCK * words, source.apart(0)),
        kernel_w=kernel_w,
        stride=op.stride[1],
        pad=pad,
        edges=pad > 0 or last > source.columns,
        out_tail=Tail.of(target) if target.pixels > 1 else None,
        low=low if low > tensor.dtype.minimum else None,
        high=high if high < tensor.dtype.maximum else None,
        # where sums are not counted, no tap is outside
        zeros=0 if end.counted else kernel_h * kernel_w * tensor.zero_point,
        ending=end,
    )
