"""Depthwise convolution: rows of four channels are taken apart, so that neighbours are pairs; where
a pass has fewer, those of one."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.c.values import whole
from pipeline.codegen.constants import wrapped
from pipeline.codegen.cortex_m import weights
from pipeline.codegen.cortex_m.ending import End, end
from pipeline.codegen.cortex_m.taps import Row, last, together
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.depthwise import columns, lanes, odd_kernel


def compute(job: Job) -> None:
    op, part = job.operator(Conv2d), job.part
    at_once = lanes(part.at_once)
    groups = weights.passes(job.target.shape[2], part.at_once, at_once)
    name, finish = op.parameters[0], end(job)
    view = job.rows_view()
    window = Windows.of(job, view)
    values = job.program.graph.constants[name].reshape(window.channels, *window.kernel)
    rows = table(values, finish, op.stride[1])
    kernel_h, kernel_w = window.kernel
    half = odd_kernel(kernel_w) // 2
    outs = together(window.out_columns, kernel_h, half, op.stride[1])
    ending = last(window.out_columns % outs, op.stride[1])
    job.call(
        "cortex_m/depthwise",
        {"in": view, "out": job.out(ring_axes=1), "scratch": job.scratch},
        {
            "first_quad": part.group(at_once),
            "channels": part.extent,
            "last_quad": part.extent + -at_once,
            "y_start": job.box[0].start,
            "y_stop": job.box[0].stop,
            "in_y": view.box[0].start,
        },
        window=window,
        first_weight=4 if finish.quick else 1,
        channel_words=rows.shape[1],
        outs=outs,
        full=Row(outs, half, op.stride[1]),
        tail=Row(ending, half, op.stride[1]) if ending else None,
        lanes=at_once,
        uneven=part.at_once % at_once or window.channels % part.at_once % at_once,
        follow=view.rows_follow and view.box[0].covers(whole(window.height)),
        columns=columns(op, job.program.graph.tensors),
        table=job.table(
            "weights", "int32_t", rows[groups],
            "for each channel what sums begin with, how they end, pairs of weights", weights=True,
        ),
        end=finish,
    )  # fmt: skip


def table(values: IntArray, finish: End, stride: int) -> IntArray:
    """(channels, words). ``values``: (channels, kh, kw). Where sums end quickly they are had twice,
    so that nothing has to double them."""
    channels, kernel_h, kernel_w = values.shape
    padded = np.zeros((channels, kernel_h, odd_kernel(kernel_w)), np.int64)
    padded[..., :kernel_w] = values * (2 if finish.quick else 1)
    pair = padded[..., :-1], padded[..., 1:]  # each tap and the next one
    even, odd = (weights.in_words(*(each[..., n::2] for each in pair)) for n in (0, 1))
    odd = odd if stride == 1 else odd[..., -1:]
    pairs = np.concatenate([even, odd], axis=-1).reshape(channels, -1)
    head = wrapped(finish.starts[:, None])
    if finish.quick:
        head = np.concatenate([wrapped(2 * head), finish.quick.constants], axis=1)
    return np.concatenate([head, pairs], axis=1)


WRITERS = {"cortex_m.depthwise": compute}
