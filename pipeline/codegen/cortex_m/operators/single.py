"""Convolution of one output channel, see ``kernels/cortex_m/single.py``: what is multiplied has no
zero point in it, since taps may lie outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.c import window
from pipeline.codegen.c.values import whole
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.cortex_m.strips import strips
from pipeline.codegen.int8 import convolution, step
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.weights import table
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.inner import unrolled
from pipeline.kernels.cortex_m.single import LEAST_CHANNELS
from pipeline.kernels.fast import pairs
from pipeline.kernels.taps import kinds
from pipeline.kernels.work import positions

MOST_PAIRS = 8
"""Most pairs of channels in the code of the innermost loop."""


def in_pieces(job: Job) -> None:
    op = job.operator(Conv2d)
    height, width, depth = job.tensor(op.inputs[0]).shape
    kernel = positions(form_of(job))
    rows, columns = window.window_axes(
        job.box, (whole(height), whole(width)), kernel, op.stride, op.padding, op.dilation
    )
    _call(
        job, "single", {}, rows=rows, columns=columns, columns_inside=width - kernel[1],
        whole=depth < LEAST_CHANNELS, out_columns=job.target.shape[1],
    )  # fmt: skip


def in_strips(job: Job) -> None:
    op = job.operator(Conv2d)
    found, depth = kinds(op, job.program.graph.tensors), job.tensor(op.inputs[0]).shape[2]
    _call(
        job, "strips", {"scratch": step.scratch(job)}, pairs=pairs(depth), rest=depth % 4,
        unroll=unrolled(pairs(depth), MOST_PAIRS), dilation=op.dilation[0], pad=op.padding[0],
        strips=strips(found, op.stride[1], op.dilation[1], op.padding[2]),
    )  # fmt: skip


def _call(job: Job, word: str, views: Mapping[str, View], **more: Any) -> None:
    """``more``: what ``word``'s template knows besides."""
    op, finish = job.operator(Conv2d), end(job)
    height, width, depth = job.tensor(op.inputs[0]).shape
    parts = [np.zeros((job.target.shape[2], 1), np.int64)]
    if finish.quick:
        parts = [job.program.graph.constants[op.parameters[1]][:, None], finish.quick.constants]
    job.call(
        f"cortex_m/{word}",
        convolution.about(job, op),
        {"in": step.source_view(job), "out": job.out(), **views},
        {"o": step.part(job).start},
        True,
        kernel=positions(form_of(job)),
        depth=depth,
        height=height,
        width=width,
        out_rows=job.target.shape[0],
        weights=table(job, op),
        end=finish,
        table=job.program.constants.add(
            op.name, "ends", "int32_t", np.concatenate(parts, axis=1),
            f"{op.name}: for each channel what sums begin with, and how they end",
        ),
        **more,
    )  # fmt: skip


WRITERS = {"cortex_m.single": in_pieces, "cortex_m.strips": in_strips}
