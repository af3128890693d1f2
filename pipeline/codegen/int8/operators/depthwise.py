"""Convolution with one input channel a group: all channels of a tap side by side."""

from __future__ import annotations

from pipeline.codegen.c import window
from pipeline.codegen.c.values import Span, whole
from pipeline.codegen.int8 import channels, convolution, weights
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job
from pipeline.graph.operators.conv2d import Conv2d


def compute(job: Job) -> None:
    """Output channel o reads input channel o // multiplier."""
    op = job.operator(Conv2d)
    source = job.tensor(op.inputs[0])
    count, kernel_h, kernel_w, _ = job.tensor(op.parameters[0]).shape
    inside, _, outs = convolution.ranges(job, op, 1)
    given = job.program.box(job.given(source.name))[2]
    multiplier = count // op.groups
    if job.partial and not given.covers(whole(source.shape[2])):
        outs = outs.within(Span(given.start * multiplier, given.stop * multiplier))
    view = job.view("in", job.given(source.name), ring_axes=2)
    box = job.program.box(job.given(op.parameters[0]))
    read = weights.weights(job, op, box, axes=weights.TAPS_FIRST)
    kernel = (kernel_h, kernel_w)
    axes = window.window_axes(job.windowed, inside, kernel, op.stride, op.padding, op.dilation)
    channels.call(
        job,
        f"{convolution.about(job, op)}{', partial' if job.partial else ''}",
        view,
        axes,
        inside,
        outs,
        divide=multiplier if op.groups > 1 else 0,
        zero=source.zero_point,
        weights=read,
        weight_row=(kernel_w * count, count),
        maximum=False,
        opened=0,
        ending=None if job.partial else ending(job.program, op),
    )
