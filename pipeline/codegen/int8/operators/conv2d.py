"""Convolution: for each output channel a sum over the window, channel by channel of the input.

One input channel a group (depthwise, or a grey image) is in ``depthwise.py``.
"""

from __future__ import annotations

from pipeline.codegen.c import window
from pipeline.codegen.c.values import whole
from pipeline.codegen.int8 import over, weights
from pipeline.codegen.int8.convolution import about, ranges
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators import accumulate, depthwise
from pipeline.errors import ThimbleError
from pipeline.graph.operators.conv2d import Conv2d


def compute(job: Job) -> None:
    op = job.operator(Conv2d)
    source = job.tensor(op.inputs[0])
    count, kernel_h, kernel_w, depth = job.tensor(op.parameters[0]).shape
    if kept := over.aside(job):
        return over.compute(job, about(job, op), kept)
    if depth == 1 and (op.groups > 1 or weights.least(job) is None):
        return depthwise.compute(job)
    piece = job.given(source.name)
    inside, channels, outs = ranges(job, op, depth)
    view = job.view("in", piece, ring_axes=2)
    rows, columns = window.window_axes(
        job.windowed, inside, (kernel_h, kernel_w), op.stride, op.padding, op.dilation
    )
    words = f"{about(job, op)}{', partial' if job.partial else ''}"
    if accumulate.compute(job, words, view, (rows, columns), inside, channels, outs):
        return
    full = channels.start.known and channels.extent.known and channels.extent.const == depth
    read = weights.weights(job, op, job.program.box(job.given(op.parameters[0])))
    held = read.window
    if held and held.strides[3] != 1:
        raise ThimbleError(f"{op.name}: code for this core reads weights side by side")
    # taps of one row side by side, channels and all: one loop
    row_wise = (
        full and (held is None or held.strides[2] == depth)
        and op.groups == 1 and op.dilation[1] == 1 and not view.rings[1]
        and (view.strides[1], view.strides[2]) == (depth, 1) and not view.torn
        and (job.partial or not columns.vacant)
    )  # fmt: skip
    pixel = not job.apart and (job.unit()[2] > 1 or bool(job.order))
    if pixel and max(job.unit()[:2]) > 1:
        raise ThimbleError(f"{op.name}: code for this core overwrites its input pixel by pixel")
    # a group's channels may be given in part
    given = job.program.box(piece)[2]
    cut = job.partial and op.groups > 1 and not (full and given.covers(whole(source.shape[2])))
    if cut and pixel:
        raise ThimbleError(f"{op.name}: code for this core adds parts of groups apart from them")
    done = {"pixel": outs.most if pixel else 0}
    together = {"most": done} if outs.covers(whole(count)) else done
    job.call(
        "int8/conv2d",
        words,
        {"in": view, **read.views, "out": job.out((*job.box[:2], outs), ring_axes=3)},
        {
            **window.ranges(job.box, inside, outs),
            **window.named("c", channels),
            **window.named("given", given),
            **window.begins(view),
            **read.values,
        },
        job.apart,
        "part" if job.partial else "",
        job.order,
        any_strides=True,
        rows=rows,
        columns=columns,
        kernel=(kernel_h, kernel_w),
        depth=depth,
        row_wise=row_wise,
        dot=weights.least(job) if row_wise else None,
        outs_per_group=0 if op.groups == 1 else count // op.groups,
        cut=cut,
        zero=source.zero_point,
        weights=read.array,
        ending=None if job.partial else ending(job.program, op),
        **together,
    )


WRITERS = {"int8.conv2d": compute}
