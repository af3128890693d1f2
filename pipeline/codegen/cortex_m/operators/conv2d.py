"""Convolution of whole tensors: windows of some pixels are widened once, for all channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.c.values import whole
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.conv2d import MOST_WORDS, Rows, is_flat, pixels_of, reached


@dataclass(frozen=True, kw_only=True)
class Window:
    """
    Attributes:
        flat: each pixel's window is its own channels, side by side with the next pixel's.
        rows: of elements in one piece, ``row`` of them: all taps and channels of a kernel's row, or
            a tap's channels.
        taps: where those taps are, rows and columns from the window's first pixel on.
        height, columns, channels: of the input.
        row_edges, column_edges: some windows reach beyond the input's rows, or columns.
        rests: see ``weights.rests``.
        follow: all rows of the input lie one after the other.
    """

    rows: int
    row: int
    taps: list[tuple[int, int]]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int]
    height: int
    columns: int
    channels: int
    out_columns: int
    row_edges: bool
    column_edges: bool
    flat: bool
    rests: list[list[tuple[int, int]]]
    follow: bool

    @property
    def row_words(self) -> int:
        return self.row // 4

    @property
    def rest(self) -> int:
        return self.row % 4

    @property
    def by_tap(self) -> bool:
        """A tap's channels are whole words."""
        return self.channels % 4 == 0


def window(job: Job, op: Conv2d, pixels: int) -> tuple[View, Window]:
    """How windows are gathered, and from where."""
    view, flat = step.rows_view(job), False
    if is_flat(op, job.program.graph.tensors):
        same = step.same_rows_view(job)
        flat = step.rows_follow(same)
        view = same if flat else view
    height, columns, channels = job.tensor(op.inputs[0]).shape
    _, kernel_h, kernel_w, _ = job.tensor(op.parameters[0]).shape
    out_rows, out_columns, _ = job.target.shape
    top, _, left, _ = op.padding
    down, across = op.dilation
    rows = Rows.of(op, job.program.graph.tensors)
    last_y, last_x = (out_rows - 1) * op.stride[0] - top, (out_columns - 1) * op.stride[1] - left
    return view, Window(
        rows=rows.number,
        row=rows.elements,
        taps=[(ky * down, kx * across) for ky, kx in rows.taps],
        kernel=(kernel_h, kernel_w),
        stride=op.stride,
        pad=(top, left),
        height=height,
        columns=columns,
        channels=channels,
        out_columns=out_columns,
        row_edges=top > 0 or last_y + down * (kernel_h - 1) >= height,
        column_edges=left > 0 or last_x + across * (kernel_w - 1) >= columns,
        flat=flat,
        rests=weights.rests(rows.number, rows.elements, pixels),
        follow=step.rows_follow(view) and view.box[0].covers(whole(height)),
    )


def met(job: Job, op: Conv2d, shape: Window) -> tuple[IntArray, IntArray]:
    """(channels, elements) of the weights that are multiplied, and (channels,) what the zero point
    has with the others, which lie outside for all pixels."""
    values = job.program.graph.constants[op.parameters[0]]
    some = values
    if shape.taps:
        taps = [values[:, ky, kx] for ky, kx in reached(op, job.program.graph.tensors)]
        some = np.stack(taps, axis=1)
    some = some.reshape(len(values), -1)
    never = values.sum((1, 2, 3)) - some.sum(1)
    return some, never * job.tensor(op.inputs[0]).zero_point


def compute(job: Job) -> None:
    op, part = job.operator(Conv2d), step.part(job)
    source, pixels = job.tensor(op.inputs[0]), pixels_of(form_of(job))
    channels, count = job.target.shape[2], job.box[0].extent * job.target.shape[1]
    view, shape = window(job, op, pixels)
    (values, never), finish = met(job, op, shape), end(job)
    finish = replace(finish, starts=finish.starts + never)
    places = weights.order(shape.rows, shape.row)
    pairs = weights.passes(channels, part.at_once, 2)
    edges = shape.row_edges or (shape.column_edges and (shape.by_tap or shape.taps))
    job.call(
        "cortex_m/conv2d",
        about(job, op),
        {"in": view, "out": job.out(), "scratch": step.scratch(job)},
        {
            "first_pair": part.group(2), "channels": part.extent, "last_pair": part.extent + -2,
            "y_start": job.box[0].start, "in_y": view.box[0].start, "count": count,
            "last_block": count - pixels,
        },
        job.apart,
        window=shape,
        pixels=pixels,
        kept=0 if job.apart else count.const % pixels,
        even=count.known and count.const % pixels == 0,
        uneven=part.at_once % 2 or channels % part.at_once % 2,
        zero=source.zero_point,
        pad_row=shape.row if edges else 0,
        looked_up=view.lookup is not None,
        widen="s8" if source.dtype.signed else "u8",
        **weights.streamed(
            job, values, places, pairs, finish, unroll=weights.by_fours(len(places), MOST_WORDS)
        ),
    )  # fmt: skip
