"""Depthwise convolutions: channel by channel, rows of one widened beside each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.cortex_m import step
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.codegen.thumb.ending import ends
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.thumb.depthwise import Strip, strip_of, together


class Phase(NamedTuple):
    """``number`` columns of the input from ``column`` on, a stride apart, go to the words of a row
    from ``first`` on."""

    first: int
    column: int
    number: int


def compute(job: Job) -> None:
    op = job.operator(Conv2d)
    source, name = job.tensor(op.inputs[0]), op.parameters[0]
    height, width, channels = source.shape
    _, kernel_h, kernel_w, _ = job.tensor(name).shape
    rows, columns, _ = job.target.shape
    top, _, left, _ = op.padding
    strip, outputs = strip_of(form_of(job)), together(columns)
    taps = [
        (ky * strip.pitch + kx % op.stride[1] * strip.columns + kx // op.stride[1])
        for ky in range(kernel_h)
        for kx in range(kernel_w)
    ]
    order = np.argsort(taps, kind="stable")
    weights = job.program.graph.constants[name].reshape(channels, -1)[:, order]
    finish = ends(job, source.zero_point)
    table = np.concatenate([finish.starts[:, None], weights, finish.ends], axis=1)
    view = step.rows_view(job)
    phases = [phase(n, strip, width, op.stride[1], left) for n in range(strip.phases)]
    job.call(
        "thumb/depthwise",
        about(job, op),
        {"in": view, "out": job.out(ring_axes=1), "scratch": step.scratch(job)},
        {"y_start": job.box[0].start, "y_count": job.box[0].extent, "in_y": view.box[0].start},
        strip=strip,
        phases=phases,
        places=sorted(taps),
        kernel=(kernel_h, kernel_w),
        stride=op.stride,
        pad=(top, left),
        height=height,
        channels=channels,
        columns=columns,
        outputs=outputs,
        blocks=columns // outputs,
        rest=columns % outputs,
        words=table.shape[1],
        zero=source.zero_point,
        edges=top > 0 or (rows - 1) * op.stride[0] - top + kernel_h > height,
        padded=left > 0 or (columns - 1) * op.stride[1] - left + kernel_w > width,
        widen="s8" if source.dtype.signed else "u8",
        ends=finish,
        table=job.program.constants.add(
            op.name,
            "table",
            "int32_t",
            table,
            f"{op.name}: of each channel what its sum begins with, its weights, and how it ends",
            job.in_flash(name),
        ),
    )


def phase(number: int, strip: Strip, width: int, stride: int, left: int) -> Phase:
    """Of the columns whose numbers, padding counted, are ``number`` modulo the stride."""
    first = max(0, -(-(left - number) // stride))
    stop = min(strip.columns, -(-(width + left - number) // stride))
    column = first * stride + number - left
    return Phase(number * strip.columns + first, column, max(0, stop - first))
