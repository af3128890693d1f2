"""Convolutions: windows of some pixels are widened once, for all channels."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.cortex_m import step
from pipeline.codegen.cortex_m.ending import wrapped
from pipeline.codegen.cortex_m.operators.conv2d import met, window
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.codegen.thumb.ending import ends
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.thumb.conv2d import pixels_of


def compute(job: Job) -> None:
    op = job.operator(Conv2d)
    source, pixels = job.tensor(op.inputs[0]), pixels_of(form_of(job))
    count = job.box[0].extent * job.target.shape[1]
    view, shape = window(job, op, pixels)
    (values, never), finish = met(job, op, shape), ends(job, source.zero_point)
    starts = wrapped(finish.starts + never)
    rows = np.concatenate([starts[:, None], packed(values), finish.ends], axis=1)
    job.call(
        "thumb/conv2d",
        about(job, op),
        {"in": view, "out": job.out(), "scratch": step.scratch(job)},
        {
            "y_start": job.box[0].start, "in_y": view.box[0].start, "count": count,
            "last_block": count - pixels,
        },
        window=shape,
        pixels=pixels,
        even=count.known and count.const % pixels == 0,
        elements=shape.rows * shape.row,
        channels=job.target.shape[2],
        channel_words=rows.shape[1],
        zero=source.zero_point,
        widen="s8" if source.dtype.signed else "u8",
        ends=finish,
        stream=job.program.constants.add(
            op.name, "stream", "int32_t", rows,
            f"{op.name}: of each channel what its sum begins with, four weights a word, its end",
            job.in_flash(op.parameters[0]),
        ),
    )  # fmt: skip


def packed(values: IntArray) -> IntArray:
    """(channels, elements) -> (channels, words): four a word, the first lowest, as C has them
    signed."""
    padded = np.pad(values.astype(np.int64), ((0, 0), (0, -values.shape[1] % 4)))
    parts = (padded & 255).reshape(len(values), -1, 4) << 8 * np.arange(4)
    return wrapped(parts.sum(axis=2))
