"""Is a step one that fast kernels are written for? And what they ask of its views."""

from __future__ import annotations

from math import prod

from pipeline.codegen.affine.job import Job
from pipeline.codegen.affine.program import ARENA
from pipeline.codegen.affine.values import Value, whole
from pipeline.codegen.affine.views import View
from pipeline.plan.vocabulary import Affine


def is_whole(job: Job) -> bool:
    """All of the output is computed at once, apart from the input, both in one piece."""
    if job.partial or not job.apart:
        return False
    source = job.tensor(job.op.inputs[0])
    if source.dtype.bits != 8 or job.target.dtype.bits != 8:
        return False
    return covers(job) and in_one_piece(job.out()) and in_one_piece(source_view(job))


def covers(job: Job) -> bool:
    """All of the output is computed."""
    return all(
        part.covers(whole(extent)) for part, extent in zip(job.box, job.target.shape, strict=True)
    )


def source_view(job: Job) -> View:
    """All of the first input, whatever part of it the windows reach."""
    name = job.op.inputs[0]
    return job.view("in", job.given(name), [whole(n) for n in job.tensor(name).shape])


def in_one_piece(view: View) -> bool:
    shape = [part.most for part in view.box]
    return not any(view.rings) and all(
        extent == 1 or stride == view.bytes * prod(shape[axis + 1 :])
        for axis, (extent, stride) in enumerate(zip(shape, view.strides, strict=True))
    )


def scratch(job: Job, needed_bytes: int) -> View | None:
    """The step's scratch if it is large enough, at a word."""
    for name in job.step.scratch:
        buffer = job.program.plan.buffer[name]
        place = buffer.map
        if not isinstance(place, Affine) or buffer.bits != 8 or place.base % 8:
            continue
        if place.strides == (2,) and buffer.shape[0] >= needed_bytes:
            box = (whole(buffer.shape[0]),)
            return View("scratch", ARENA, Value(place.base // 2), (1,), (0,), box, 8, False)
    return None
