"""A row of an image that is made over a row of its input: what would overwrite an input that is yet
to be read is kept aside, some pixels, or a channel of the row."""

from __future__ import annotations

from pipeline.codegen.c.kernel import SCRATCH
from pipeline.codegen.c.values import Value, whole
from pipeline.codegen.c.views import View
from pipeline.codegen.int8 import weights
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.windowed import Windowed
from pipeline.codegen.program import ARENA
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.plan.vocabulary import Affine, Buffer

POOLED = 0
"""For the outputs of a group: each channel is made of its own."""


def aside(job: Job) -> Buffer | None:
    """What the step keeps there."""
    buffers = (job.program.plan.buffer[name] for name in job.step.scratch)
    return next((buffer for buffer in buffers if buffer.role == "aside"), None)


def compute(job: Job, about: str, kept: Buffer) -> None:
    """``kept``: the step's ``aside``."""
    op, source, target = job.op, job.tensor(job.op.inputs[0]), job.target
    assert isinstance(op, Conv2d | Pool2d)
    windows = Windowed.of(job, (whole(source.shape[0]), whole(source.shape[1])), job.box[2])
    depth, per_group, read = _shape(job)
    end, maximum = ending(job.program, op), op.combine == "maximum"
    averages = isinstance(op, AveragePool2d) and end.counted
    width, backwards = target.shape[1], job.step.order[:1] > job.step.order[-1:]
    assert isinstance(kept.map, Affine)
    at, size_bytes = Value(kept.map.base // 2), (whole(kept.shape[0]),)
    held = View(SCRATCH, ARENA, at, (1,), (0,), size_bytes, bits=8, signed=False)
    windows.call(
        "int8/over",
        about,
        read,
        {
            "x_first": Value(width - 1 if backwards else 0),
            "x_step": Value(-1 if backwards else 1),
        },
        {SCRATCH: held},
        apart=False,
        kind="over",
        depth=depth,
        per_group=per_group,
        taps_apart=_taps_apart(job),
        zero=0 if maximum or averages else source.zero_point,
        maximum=maximum,
        opened=source.dtype.minimum if maximum else 0,
        ending=end,
        by_channel=job.step.unit[1] > 1 or job.step.unit[2] < target.shape[2],
        delay=job.step.delay,
        width=width,
        pixel_bytes=target.shape[2] * target.dtype.bits // 8,
    )


def _shape(job: Job) -> tuple[int, int, weights.Weights | None]:
    """The input channels that an output adds up, how many outputs have the same, -1: all; and the
    weights."""
    op = job.op
    if isinstance(op, Pool2d):
        return 1, POOLED, None
    assert isinstance(op, Conv2d)
    count, _, _, depth = job.tensor(op.parameters[0]).shape
    read = weights.weights(job, weights.TAPS_FIRST if _taps_apart(job) else ())
    return depth, count // op.groups if op.groups > 1 else -1, read


def _taps_apart(job: Job) -> int:
    """Weights from one tap to the next, where rows that lie over nothing want them side by side for
    all channels: one table for both; 0: as the tensor has them."""
    op = job.op
    if not isinstance(op, Conv2d) or job.held(op.parameters[0]):
        return 0
    count, _, _, depth = job.tensor(op.parameters[0]).shape
    return count if depth == 1 else 0
