"""Average and maximum pooling: all channels of a tap side by side."""

from __future__ import annotations

from pipeline.codegen.c.values import whole
from pipeline.codegen.int8 import channels
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.windowed import Windowed
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d


def compute(job: Job) -> None:
    op = job.operator(Pool2d)
    given = job.program.box(job.given(job.source.name))
    rows, columns, _ = given if job.partial else map(whole, job.source.shape)
    outs = job.box[2].within(given[2]) if job.partial else job.box[2]
    averages, end = isinstance(op, AveragePool2d), job.ending
    # what is counted are stored integers, zero points included
    zero = job.source.zero_point if averages and not (end and end.counted) else 0
    channels.call(
        Windowed.of(job, (rows, columns), outs),
        divide=1,
        zero=zero,
        maximum=not averages,
        opened=0 if averages else job.source.dtype.minimum,
    )


WRITERS = {"int8.average_pool2d": compute, "int8.max_pool2d": compute}
