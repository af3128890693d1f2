"""Convolutions and pooling pixel by pixel, in any order, over what they are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.c import window as box
from pipeline.codegen.c.kernel import ASIDE, SCRATCH
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.ending import End, end, wrapped
from pipeline.codegen.cortex_m.operators.pool import pooled
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job, scratch_view
from pipeline.codegen.int8.operators import pool2d as of_pool
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.conv2d import MOST_WORDS
from pipeline.kernels.cortex_m.gathered import (
    LANES,
    MOST_TAPS_UNROLLED,
    GatheredConvolution,
    GatheredPool,
    window,
)
from pipeline.kernels.work import positions

HEADER = "nn_gathered.h"


@dataclass(frozen=True, kw_only=True)
class Windows:
    """
    Attributes:
        kernel, stride, dilation: rows, columns; ``pad``: rows above, columns to the left.
        height, width, channels: of the input.
        row_edges, column_edges: some windows reach beyond its rows, or columns.
        in_rows: taps of a kernel's row lie side by side where all of them are inside.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
    height: int
    width: int
    channels: int
    row_edges: bool
    column_edges: bool
    in_rows: bool

    @classmethod
    def of(cls, job: Job, view: View, taps: tuple[range, range] | None = None) -> Windows:
        """``taps``: those rows and columns of the kernel alone."""
        op = job.op
        assert isinstance(op, Conv2d | Pool2d)
        height, width, channels = job.tensor(op.inputs[0]).shape
        all_rows, all_columns = positions(form_of(job))
        rows, columns = taps or (range(all_rows), range(all_columns))
        kernel_h, kernel_w = len(rows), len(columns)
        dilation = op.dilation if isinstance(op, Conv2d) else (1, 1)
        out_rows, out_columns, _ = job.target.shape
        top = op.padding[0] - rows.start * dilation[0]
        left = op.padding[2] - columns.start * dilation[1]
        down, right = (out_rows - 1) * op.stride[0] - top, (out_columns - 1) * op.stride[1] - left
        return cls(
            kernel=(kernel_h, kernel_w), stride=op.stride, dilation=dilation, pad=(top, left),
            height=height, width=width, channels=channels,
            row_edges=top > 0 or down + (kernel_h - 1) * dilation[0] >= height,
            column_edges=left > 0 or right + (kernel_w - 1) * dilation[1] >= width,
            in_rows=kernel_w > 1 and dilation[1] == 1 and view.strides[1] == channels
            and not (view.lookup and view.lookup.axes > 1),
        )  # fmt: skip

    def inside(self, top: str, left: str) -> str:
        """C of whether all of a window is."""
        rows = self.height - (self.kernel[0] - 1) * self.dilation[0]
        columns = self.width - (self.kernel[1] - 1) * self.dilation[1]
        return f"{top} >= 0 && {top} < {rows} && {left} >= 0 && {left} < {columns}"

    @property
    def taps(self) -> int:
        return prod(self.kernel)

    @property
    def elements(self) -> int:
        return self.taps * self.channels


def convolution(job: Job) -> None:
    op, view = job.operator(Conv2d), step.source_view(job)
    kernel, form, source = GatheredConvolution(), form_of(job), job.tensor(op.inputs[0])
    taps = rows, columns = window(form)
    windows = Windows.of(job, view, taps)
    pixels, (beside, made, _) = kernel.together(form), kernel.beside(form)
    every = job.program.graph.constants[op.parameters[0]]
    some = every[:, rows.start : rows.stop, columns.start : columns.stop]
    outside = every.sum((1, 2, 3)) - some.sum((1, 2, 3))
    finish = end(job)
    finish = replace(finish, starts=finish.starts + outside * source.zero_point)
    values = some.reshape(job.target.shape[2], -1)
    places = weights.order(1, windows.elements)
    pairs = weights.pairs(len(values), 2)
    _call(
        job,
        "cortex_m/gathered_conv2d",
        about(job, op),
        view,
        windows,
        pixels=pixels,
        tail=kernel.tail(form),
        rests=weights.rests(1, windows.elements, pixels)[0],
        beside=beside,
        made_at=made,
        **weights.streamed(
            job, values, places, pairs, finish, unroll=weights.by_fours(len(places), MOST_WORDS)
        ),
    )


def depthwise(job: Job) -> None:
    op, view = job.operator(Conv2d), step.source_view(job)
    finish, values = end(job), job.program.graph.constants[op.parameters[0]]
    rows = table(values.reshape(len(values), -1), finish)
    _call(
        job,
        "cortex_m/gathered_depthwise",
        about(job, op),
        view,
        Windows.of(job, view),
        end=finish,
        row_words=rows.shape[1],
        unrolled=values[0].size <= MOST_TAPS_UNROLLED,
        table=job.program.constants.add(
            op.name, "weights", "int32_t", rows,
            f"{op.name}: for four channels what sums begin with, how they end, and each tap's",
            job.in_flash(op.parameters[0]),
        ),
    )  # fmt: skip


def table(values: IntArray, finish: End) -> IntArray:
    """(groups of four channels, words). ``values``: (channels, taps). Where sums end quickly they
    are had twice, so that nothing has to double them. Of a tap's words the first has channels 2
    and 0, the second 3 and 1, the former in the lower half."""
    groups = weights.pairs(len(values), LANES)
    factor = 2 if finish.quick else 1
    head = [wrapped(factor * finish.starts[groups])]
    if finish.quick:
        head.append(finish.quick.constants[groups].reshape(len(groups), -1))
    four = (factor * values.astype(np.int64))[groups]  # (groups, 4, taps)
    pairs = four[:, :2] * 65536 + (four[:, 2:] & 0xFFFF)
    return np.concatenate([*head, pairs.transpose(0, 2, 1).reshape(len(groups), -1)], axis=1)


def pool(job: Job) -> None:
    op, view = job.operator(Pool2d), step.source_view(job)
    _call(
        job,
        "cortex_m/gathered_pool",
        of_pool.about(job, op),
        view,
        Windows.of(job, view),
        made=GatheredPool().made(form_of(job)),
        **pooled(job, op),
    )


def _call(job: Job, template: str, words: str, view: View, windows: Windows, **shared: Any) -> None:
    """``words``: of the comment above the code; ``shared``: what the template knows besides."""
    rows, columns, _ = job.box
    source = job.tensor(job.op.inputs[0])
    job.program.headers.add(HEADER)
    aside = {ASIDE: scratch_view(job.kept, ASIDE)} if job.kept and job.step.delay else {}
    job.call(
        template,
        words,
        {"in": view, "out": job.out(), SCRATCH: step.scratch(job), **aside},
        {**box.named("y", rows), **box.named("x", columns)},
        job.apart,
        order=job.order,
        any_strides=True,
        delay=job.step.delay,
        window=windows,
        zero=source.zero_point,
        widen="s8" if source.dtype.signed else "u8",
        channels=job.target.shape[2],
        **shared,
    )
