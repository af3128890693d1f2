"""Convolutions: windows of some pixels are widened once, for all channels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.cortex_m import step
from pipeline.codegen.cortex_m.ending import wrapped
from pipeline.codegen.cortex_m.operators.conv2d import window
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.operators.conv2d import about
from pipeline.codegen.thumb.ending import ends
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.conv2d import is_flat, reached
from pipeline.kernels.thumb.conv2d import pixels_of


def compute(job: Job) -> None:
    op = job.op
    assert isinstance(op, Conv2d)
    tensors = job.program.graph.tensors
    source, name = job.tensor(op.inputs[0]), op.parameters[0]
    count = job.box[0].extent * job.target.shape[1]
    pixels, view, flat = pixels_of(form_of(job)), step.rows_view(job), False
    if is_flat(op, tensors):
        same = step.same_rows_view(job)
        flat = step.rows_follow(same)
        view = same if flat else view
    shape = window(job, op, pixels, view, flat)
    values = job.program.graph.constants[name]
    finish = ends(job, source.zero_point)
    if shape.taps:
        taps = [values[:, ky, kx] for ky, kx in reached(op, tensors)]
        values = np.stack(taps, axis=1)
        never = job.program.graph.constants[name].sum((1, 2, 3)) - values.sum((1, 2))
        starts = wrapped(finish.starts + never * source.zero_point)
        finish = replace(finish, starts=starts)
    rows = np.concatenate(
        [finish.starts[:, None], packed(values.reshape(len(values), -1)), finish.ends], axis=1
    )
    job.program.call(
        op.name,
        "thumb/conv2d",
        about(job, op),
        {"in": view, "out": job.out(), "scratch": step.scratch(job)},
        {
            "y_start": job.box[0].start, "in_y": view.box[0].start, "count": count,
            "last": count - pixels,
        },
        job.apart,
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
            job.in_flash(name),
        ),
    )  # fmt: skip


def packed(values: IntArray) -> IntArray:
    """(channels, elements) -> (channels, words): four a word, the first lowest, as C has them
    signed."""
    padded = np.pad(values.astype(np.int64), ((0, 0), (0, -values.shape[1] % 4)))
    parts = (padded & 255).reshape(len(values), -1, 4) << 8 * np.arange(4)
    return wrapped(parts.sum(axis=2))
