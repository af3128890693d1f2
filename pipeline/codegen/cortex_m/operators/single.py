"""Convolution of one output channel: a pass of a loop that makes channels one by one.

No other channel uses what is widened. Where rows are short, a row of the input is widened once for
all rows of the kernel, and a pixel is loaded once for all its taps. Elsewhere elements are
multiplied as they are stored, tap by tap or, where pixels have few channels, a row of the kernel at
once. What the zero point adds is taken off for each tap, since taps may lie outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipeline.codegen.c import window
from pipeline.codegen.c.values import whole
from pipeline.codegen.cortex_m import step
from pipeline.codegen.cortex_m.ending import end, wrapped
from pipeline.codegen.cortex_m.strips import strips
from pipeline.codegen.int8 import convolution
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.weights import table
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.columns import kinds
from pipeline.kernels.cortex_m.fast import pairs
from pipeline.kernels.cortex_m.inner import unrolled
from pipeline.kernels.cortex_m.single import LEAST_CHANNELS

MOST_PAIRS = 8
"""Most pairs of channels in the code of the innermost loop."""


def in_pieces(job: Job) -> None:
    op, part, view = job.operator(Conv2d), step.part(job), step.source_view(job)
    source, values = job.tensor(op.inputs[0]), job.program.graph.constants[op.parameters[0]]
    _, kernel_h, kernel_w, depth = values.shape
    height, width, _ = source.shape
    rows, columns = window.window_axes(
        job.box, (whole(height), whole(width)), (kernel_h, kernel_w), op.stride, op.padding,
        op.dilation,
    )  # fmt: skip
    job.call(
        "cortex_m/single",
        convolution.about(job, op),
        {"in": view, "out": job.out()},
        {"o": part.start},
        True,
        rows=rows,
        columns=columns,
        columns_inside=width - kernel_w,
        whole=depth < LEAST_CHANNELS,
        kernel=(kernel_h, kernel_w),
        depth=depth,
        height=str(height),
        width=str(width),
        out_rows=job.target.shape[0],
        out_columns=job.target.shape[1],
        widen="s8" if source.dtype.signed else "u8",
        weights=table(job, op),
        **_ends(job, op, by_row=True),
    )  # fmt: skip


def _ends(job: Job, op: Conv2d, *, by_row: bool) -> dict[str, Any]:
    """Describe the end of a channel's sum, with a table: what it begins with, how it ends, and what
    the zero point adds to each row of the kernel, if ``by_row``, and to each tap."""
    finish, values = end(job), job.program.graph.constants[op.parameters[0]]
    less = values.sum(axis=3) * job.tensor(op.inputs[0]).zero_point
    starts = wrapped((finish.starts + less.sum(axis=(1, 2)))[:, None])
    ends = [starts, *([finish.quick.constants] if finish.quick else [])]
    each = [*([less.sum(axis=2)] if by_row else []), less.reshape(len(less), -1)]
    text = "for each channel what sums begin with, how they end, and what the zero point adds"
    return {
        "end": finish,
        "table": job.program.constants.add(
            op.name, "ends", "int32_t", np.concatenate([*ends, *each], axis=1),
            f"{op.name}: {text}",
        ),
    }  # fmt: skip


def in_strips(job: Job) -> None:
    op, part = job.operator(Conv2d), step.part(job)
    tensors, name = job.program.graph.tensors, op.parameters[0]
    found = kinds(op, tensors)
    source, values = job.tensor(op.inputs[0]), job.program.graph.constants[name]
    _, kernel_h, kernel_w, depth = values.shape
    height, width, _ = source.shape
    job.call(
        "cortex_m/strips",
        convolution.about(job, op),
        {"in": step.source_view(job), "out": job.out(), "scratch": step.scratch(job)},
        {"o": part.start},
        True,
        kernel=(kernel_h, kernel_w),
        depth=depth,
        pairs=pairs(depth),
        rest=depth % 4,
        unroll=unrolled(pairs(depth), MOST_PAIRS),
        height=height,
        width=width,
        out_rows=job.target.shape[0],
        dilation=op.dilation[0],
        pad=op.padding[0],
        kinds=found,
        kind_of=[n for n, kind in enumerate(found) for _ in range(kind.first, kind.stop)],
        strips=strips(found, op.stride[1], op.dilation[1], op.padding[2]),
        widen="s8" if source.dtype.signed else "u8",
        weights=table(job, op),
        **_ends(job, op, by_row=False),
    )  # fmt: skip
