"""Softmax: three passes over each row."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.c import nest
from pipeline.codegen.c.expressions import product, total
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operators.softmax import Softmax


def compute(job: Job) -> None:
    op = job.operator(Softmax)
    job.refuse_overlap()
    source = job.tensor(op.inputs[0])
    extent = source.shape[-1]
    view, out = job.view("in", job.given(source.name), job.box), job.out()
    extents, channel = [part.extent for part in job.box], "c"
    if view.lookup or out.lookup:
        loops, counts = nest.nest(extents, [out.strides, view.strides], [out, view], merge=False)
        inner = loops.axes[-1:] if extent > 1 else ()
        channel = inner[0].variable if inner else channel
        rows, value, place = loops.without(len(inner)), view.load(loops.at(1)), loops.at(0)
    else:
        rows, counts = nest.nest(extents[:-1], [out.strides[:-1], view.strides[:-1]])
        value = f"row[{product(channel, view.strides[-1])}]"
        place = total(rows.at(0), product(channel, out.strides[-1]))
    table = job.program.constants.add(
        op.name,
        "exp",
        "int32_t",
        np.array(op.exponentials, dtype=np.int64),
        f"{op.name}: exponential of an input so far below the maximum, Q0.31",
    )
    job.call(
        "int8/softmax",
        f"{op.name}: softmax {shape_text(source.shape)}",
        {"in": view, "out": out},
        counts,
        job.apart,
        nest=rows,
        extent=extent,
        channel=channel,
        input=value,
        place=place,
        row="" if view.lookup or out.lookup else rows.at(1),
        table=table,
        least=source.dtype.minimum,
        limits=(job.target.dtype.minimum, job.target.dtype.maximum),
    )


WRITERS = {"int8.softmax": compute}
