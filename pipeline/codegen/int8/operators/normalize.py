"""Normalization: two passes over what is normalized together."""

from __future__ import annotations

from pipeline.codegen.int8.ending import stored
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.graph.operator import limits
from pipeline.graph.operators.normalize import Normalize


def compute(job: Job) -> None:
    op, tensors = job.operator(Normalize), job.program.graph.tensors
    job.refuse_overlap()
    view = job.view("in", job.given(job.source.name))
    ranges = {f"in_{axis}": part.start for axis, part in enumerate(view.box)}
    for axis, part in enumerate(job.box):
        ranges |= {f"from_{axis}": part.start, f"to_{axis}": part.stop}
    job.call(
        "int8/normalize",
        {"in": view, "out": job.out()},
        ranges,
        about=f"{op.name}: normalization of {shape_text(job.source.shape)} over axes {op.axes}",
        any_strides=True,
        axes=op.axes,
        count=op.count(tensors),
        about_mean=op.centred,
        epsilon=op.epsilon,
        multiplier=op.requant.multipliers[0],
        shift=op.requant.shifts[0],
        result=stored("value", limits(job.target, None), job.target.zero_point),
    )


WRITERS = {"int8.normalize": compute}
