"""Pooling: all channels of a tap side by side."""

from __future__ import annotations

from pipeline.codegen.c.values import whole
from pipeline.codegen.int8 import channels
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.windowed import Windowed
from pipeline.graph.operators.pool2d import POOLINGS, Pool2d
from pipeline.kernels.int8.costs import word


def compute(job: Job) -> None:
    op = job.operator(Pool2d)
    given = job.program.box(job.given(job.source.name))
    rows, columns, _ = given if job.partial else map(whole, job.source.shape)
    outs = job.box[2].within(given[2]) if job.partial else job.box[2]
    adds, end = op.combine == "add", job.ending
    # what is counted are stored integers, zero points included
    zero = job.source.zero_point if adds and not (end and end.counted) else 0
    channels.call(Windowed.of(job, (rows, columns), outs), divide=1, zero=zero)


WRITERS = {f"int8.{word(kind)}": compute for kind in POOLINGS}
