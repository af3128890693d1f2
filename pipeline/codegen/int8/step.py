"""Demands of fast kernels on a step's views."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.codegen.c.values import Span, Value, whole
from pipeline.codegen.c.views import View
from pipeline.codegen.int8.job import Job, scratch_view


@dataclass(frozen=True)
class Part:
    """All pixels of some output channels: ``at_once`` from ``start`` on, in a last pass fewer."""

    at_once: int
    start: Value
    extent: Value

    def group(self, step: int) -> Value:
        """The number of the first group of ``step`` channels; see ``weights.passes``."""
        return self.start // self.at_once * -(-self.at_once // step)


def part(job: Job) -> Part:
    """Return what a step computes of an image's channels."""
    channels, count = job.box[-1], job.target.shape[-1]
    if channels.covers(whole(count)):
        return Part(count, Value(), Value(count))
    return Part(job.step.out.size[-1], channels.start, channels.extent)


def source_view(job: Job) -> View:
    """All of the first input, whatever part of it the windows reach."""
    name = job.op.inputs[0]
    return job.view("in", job.given(name), [whole(n) for n in job.tensor(name).shape])


def rows_view(job: Job, rows: Span | None = None) -> View:
    """The rows of the first input that the step reads, wherever they lie, all pixels of each, the
    channels that it takes; ``rows``: others."""
    piece = job.given(job.op.inputs[0])
    given, _, channels = job.program.box(piece)
    columns = whole(job.tensor(job.op.inputs[0]).shape[1])
    return job.view("in", piece, (rows or given, columns, channels), ring_axes=1)


def rows_follow(view: View) -> bool:
    """Check whether rows follow each other as pixels do."""
    rows, columns, _ = (part.most for part in view.box)
    plain = view.lookup is None and not view.rings[0]
    return plain and (rows == 1 or view.strides[0] == columns * view.strides[1])


def scratch(job: Job) -> View:
    """All of the step's scratch: it begins at a word."""
    buffer = job.program.plan.buffer[job.step.scratch[0]]
    return scratch_view(buffer)
