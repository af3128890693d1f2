"""Softmax: three passes over each row."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.c import nest
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operators.softmax import Softmax


def compute(job: Job) -> None:
    op = job.operator(Softmax)
    job.refuse_overlap()
    extent = job.source.shape[-1]
    view, out = job.view("in", job.given(job.source.name), job.box), job.out()
    extents = [part.extent for part in job.box]
    loops, counts = nest.nest(extents, [out.strides, view.strides], [out, view], pixels=True)
    values = np.array(op.exponentials, dtype=np.int64)
    about = "exponential of an input so far below the maximum, Q0.31"
    table = job.table("exp", "int32_t", values, about)
    job.call(
        "int8/softmax",
        {"in": view, "out": out},
        counts,
        about=f"{op.name}: softmax {shape_text(job.source.shape)}",
        nest=loops.without(1),
        extent=extent,
        channel=loops.pixel,
        input=view.load(loops.at(1)),
        place=loops.at(0),
        table=table,
        least=job.source.dtype.minimum,
        limits=(job.target.dtype.minimum, job.target.dtype.maximum),
    )


WRITERS = {"int8.softmax": compute}
