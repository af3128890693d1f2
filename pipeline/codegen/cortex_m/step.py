"""Is a step one that fast kernels are written for? And what they ask of its views."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.program import ARENA
from pipeline.codegen.int8.values import Value, whole
from pipeline.codegen.int8.views import View
from pipeline.plan.vocabulary import Affine


def is_whole(job: Job) -> bool:
    """All of the output is computed at once, apart from the input, both in one piece."""
    if job.partial or not job.apart:
        return False
    source = job.tensor(job.op.inputs[0])
    if source.dtype.bits != 8 or job.target.dtype.bits != 8:
        return False
    return covers(job) and in_one_piece(job.out()) and in_one_piece(source_view(job))


@dataclass(frozen=True)
class Part:
    """All pixels of some output channels: ``at_once`` from ``start`` on, in a last pass fewer."""

    at_once: int
    start: Value
    extent: Value

    def group(self, step: int) -> Value:
        """The number of the first group of ``step`` channels; see ``weights.passes``."""
        return self.start // self.at_once * -(-self.at_once // step)


def part(job: Job) -> Part | None:
    """What a step computes of an image's channels, apart from its input; None: something else."""
    source, (*pixels, channels) = job.tensor(job.op.inputs[0]), job.box
    if job.partial or not job.apart or source.dtype.bits != 8 or job.target.dtype.bits != 8:
        return None
    *sides, count = job.target.shape
    if len(sides) != 2 or not all(
        span.covers(whole(extent)) for span, extent in zip(pixels, sides, strict=True)
    ):
        return None
    if not evenly_spaced(job.out()):
        return None
    if channels.covers(whole(count)):
        return Part(count, Value(), Value(count))
    start = channels.start
    if start.const or [factor for _, factor in start.terms] != [channels.most]:
        return None
    return Part(channels.most, start, channels.extent)


def evenly_spaced(view: View) -> bool:
    """Rows follow each other as pixels do, and a pixel's channels lie side by side."""
    rows, columns, channels = (span.most for span in view.box)
    row, pixel, channel = view.strides
    return (
        not any(view.rings)
        and (rows == 1 or row == columns * pixel)
        and (channels == 1 or channel == view.bytes)
    )


def covers(job: Job) -> bool:
    """All of the output is computed."""
    return all(
        part.covers(whole(extent)) for part, extent in zip(job.box, job.target.shape, strict=True)
    )


def source_view(job: Job) -> View:
    """All of the first input, whatever part of it the windows reach."""
    name = job.op.inputs[0]
    return job.view("in", job.given(name), [whole(n) for n in job.tensor(name).shape])


def channels_view(job: Job) -> View:
    """All pixels of the first input, and the channels that the step reads."""
    piece = job.given(job.op.inputs[0])
    *sides, _ = job.tensor(job.op.inputs[0]).shape
    return job.view("in", piece, [*map(whole, sides), job.program.box(piece)[-1]])


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
