"""Convolutions and dense layers whose weights lie in a window, in the order that the tensor has."""

from __future__ import annotations

from pipeline.codegen.c import window
from pipeline.codegen.c.values import whole
from pipeline.codegen.int8.convolution import about, ranges
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.weights import weights
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import Tensor

HEADER = "nn_ordered.h"


def convolution(job: Job) -> None:
    op = job.operator(Conv2d)
    source = job.tensor(op.inputs[0])
    _, kernel_h, kernel_w, depth = job.tensor(op.parameters[0]).shape
    inside, _, outs = ranges(job, op, depth)
    kernel = (kernel_h, kernel_w)
    rows, columns = window.window_axes(job.box, inside, kernel, op.stride, op.padding)
    view = job.view("in", job.given(source.name), ring_axes=2)
    read = weights(job)
    job.program.headers.add(HEADER)
    job.call(
        "cortex_m/ordered_conv2d",
        about(job, op),
        {"in": view, **read.views, "out": job.out((*job.box[:2], outs), ring_axes=3)},
        {
            **window.ranges(job.box, inside, outs),
            "in_y": view.box[0].start,
            "in_x": view.box[1].start,
            **read.values,
        },
        job.apart,
        any_strides=True,
        rows=rows,
        columns=columns,
        depth=depth,
        less=_less(source),
        ending=ending(job.program, op),
    )


def dense(job: Job) -> None:
    op = job.op
    source = job.tensor(op.inputs[0])
    outs = job.box[0]
    box = [whole(extent) for extent in source.shape]
    view = job.view("in", job.given(source.name), box)
    read = weights(job, taken=box)
    job.program.headers.add(HEADER)
    job.call(
        "cortex_m/ordered_dense",
        f"{op.name}: dense {shape_text(source.shape)} -> {shape_text(job.target.shape)}",
        {"in": view, **read.views, "out": job.out((outs,), ring_axes=1)},
        {**window.named("o", outs), **read.values},
        job.apart,
        any_strides=True,
        inputs=source.size,
        less=_less(source),
        ending=ending(job.program, op),
    )


def _less(source: Tensor) -> str:
    """Both halves of a word."""
    return f"0x{(-source.zero_point & 0xFFFF) * 0x10001:08X}u"
