"""Convolution of one output channel: a pass of a loop that makes channels one by one.

Nothing is worth widening beforehand, since no other channel would use it. Elements are multiplied
as they are stored; what the zero point adds is taken off tap by tap, since taps may lie outside.
"""

from __future__ import annotations

from pipeline.codegen.affine import window
from pipeline.codegen.affine.ending import ending
from pipeline.codegen.affine.job import Job
from pipeline.codegen.affine.operators import conv2d
from pipeline.codegen.cortex_m import step
from pipeline.graph.operators.conv2d import Conv2d

LEAST_CHANNELS = 8
"""Of an input: of fewer the portable kernel is as fast."""


def compute(job: Job) -> bool:
    op = job.op
    assert isinstance(op, Conv2d)
    source, name = job.tensor(op.inputs[0]), op.parameters[0]
    values, view = job.program.graph.constants[name], step.source_view(job)
    _, kernel_h, kernel_w, depth = values.shape
    if op.groups > 1 or depth < LEAST_CHANNELS or not step.in_one_piece(view):
        return False
    inside, _, outs = conv2d.ranges(job, op, depth)
    rows, columns = window.window_axes(
        job.box, inside, view, (kernel_h, kernel_w), op.stride, op.padding, op.dilation
    )
    constants = job.program.constants
    less = values.sum(axis=3) * source.zero_point
    job.program.call(
        op.name,
        "cortex_m/single",
        conv2d.about(job, op),
        {"in": view, "out": job.out()},
        {
            **window.named("y", job.box[0]),
            **window.named("x", job.box[1]),
            **window.named("inside_y", inside[0]),
            **window.named("inside_x", inside[1]),
            "o": outs.start,
        },
        True,
        rows=rows,
        columns=columns,
        kernel=(kernel_h, kernel_w),
        depth=depth,
        widen="s8" if source.dtype.signed else "u8",
        weights=conv2d.table(job, op, "weights"),
        less=constants.add(
            op.name, "less", "int32_t", less, f"{op.name}: what the zero point adds to each tap"
        ),
        ending=ending(job.program, op),
    )
    return True
