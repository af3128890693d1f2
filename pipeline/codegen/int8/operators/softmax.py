"""Softmax: three passes over each row."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.codegen.c import nest
from pipeline.codegen.int8.ending import scaling
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operators.softmax import Softmax, WideSoftmax


def compute(job: Job) -> None:
    values = np.array(job.operator(Softmax).exponentials, dtype=np.int64)
    about = "exponential of an input so far below the maximum, Q0.31"
    table = job.table("exp", "int32_t", values, about)
    limits = job.target.dtype.minimum, job.target.dtype.maximum
    _call(job, "int8/softmax", table=table, least=job.source.dtype.minimum, limits=limits)


def compute_wide(job: Job) -> None:
    op = job.operator(WideSoftmax)
    below = scaling(job.program.constants, op.name, op.requant, (-65535, 0))
    tables = (
        job.table(kind, "int16_t", np.array(points, np.int64), f"{kind} in Q0.15")
        for kind, points in (("exponential", op.exponentials), ("reciprocal", op.reciprocals))
    )
    _call(job, "int8/wide_softmax", below=below, tables=[*tables])


def _call(job: Job, template: str, **values: Any) -> None:
    job.refuse_overlap()
    view, out = job.view("in", job.given(job.source.name), job.box), job.out()
    extents = [part.extent for part in job.box]
    loops, counts = nest.nest(extents, [out.strides, view.strides], [out, view], pixels=True)
    job.call(
        template, {"in": view, "out": out}, counts,
        about=f"{job.op.name}: softmax {shape_text(job.source.shape)}", nest=loops.without(1),
        extent=job.source.shape[-1], channel=loops.pixel, input=view.load(loops.at(1)),
        place=loops.at(0), made=out.load(loops.at(0)), **values,
    )  # fmt: skip


WRITERS = {"int8.softmax": compute, "int8.wide_softmax": compute_wide}
