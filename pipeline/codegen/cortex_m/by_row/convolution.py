"""Convolutions of a row: windows of up to four pixels are widened, then all channels are made of
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from pipeline.codegen.binding import form_of
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.by_row.rows import input_rows, layouts, out_row
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.int8.convolution import about
from pipeline.codegen.int8.job import Job
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.cortex_m.by_row.convolution import (
    RowConvolution,
    RowFused,
    RowImage,
    RowPointwise,
    RowSpatial,
    RowWide,
    columns_widened,
    reached_columns,
)
from pipeline.kernels.cortex_m.by_row.layout import BLOCK, RowLayout
from pipeline.kernels.cortex_m.by_row.parts import Part
from pipeline.kernels.form import Form

KERNELS: dict[str, type[RowConvolution]] = {
    "pointwise": RowPointwise, "fused": RowFused, "conv2d": RowSpatial, "wide": RowWide,
    "image": RowImage,
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """Parts whose code is the same, one after the other.

    Attributes:
        source: how the input's rows lie, where pixels are read one by one from there.
    """

    members: tuple[Part, ...]
    target: RowLayout
    pairs: int
    source: RowLayout | None = None
    stride: int = 1

    @property
    def first(self) -> int:
        return self.members[0].first

    @property
    def pixels(self) -> int:
        return self.members[0].pixels

    @property
    def count(self) -> int:
        return len(self.members)

    def place(self, pixel: int, channel: int) -> str:
        """C of where a pixel's channel goes, counted from o, from where the first pixel's does."""
        apart, at = self.target.apart(self.first), self.target.at(self.first + pixel)
        return f"to[o * {apart} + {channel * apart + at - self.target.at(self.first)}]"

    @property
    def to(self) -> int:
        return self.target.at(self.first)

    @property
    def shift(self) -> int:
        return self.target.at(self.members[1].first) - self.to if self.count > 1 else 0

    # --- of pointwise ones

    @property
    def of(self) -> RowLayout:
        assert self.source is not None
        return self.source

    @property
    def back(self) -> int:
        """How many pixels before the first one the word of it begins: one must not end behind the
        row's."""
        plane = self.of.plane and self.stride == 1
        return max(0, self.first + BLOCK - self.of.columns) if plane else 0

    @property
    def word(self) -> int | None:
        """The first pixel's number in a word that holds all of them; None: there is none."""
        whole = self.of.columns >= BLOCK if self.of.plane else self.first < self.of.full
        return self.back if self.stride == 1 and whole else None

    @property
    def words(self) -> int:
        """From the word that holds the first two pixels, of stride 2, to that of the next two."""
        last = self.members[-1].first * self.stride + 2 * BLOCK
        whole = self.stride == 2 and self.pixels == BLOCK and last <= self.of.full
        return self.of.at(BLOCK) - self.of.at(0) if whole else 0

    @property
    def begins(self) -> int:
        return self.of.at(self.first * self.stride) - self.back

    @property
    def move(self) -> int:
        if self.count == 1:
            return 0
        first, second = (self.of.at(part.first * self.stride) for part in self.members[:2])
        return second - first

    @property
    def apart(self) -> int:
        return self.of.apart(self.first * self.stride)

    @property
    def bytes(self) -> list[int]:
        """Where the pixels are, from ``begins`` on."""
        columns = range(self.first, self.first + self.pixels)
        return [self.of.at(c * self.stride) - self.begins for c in columns]


def runs(
    form: Form, kernel: RowConvolution, source: RowLayout | None = None, stride: int = 1
) -> list[Run]:
    """``source``: how the input's rows lie, where pixels are read one by one from there."""
    _, target = kernel.known(form)

    def one(*parts: Part) -> Run:
        return Run(parts, target, kernel.at_once(parts[0], form), source, stride)

    def like(part: Part) -> tuple[object, ...]:
        run = one(part)
        found = (run.pixels, target.apart(part.first))
        if source is None:
            return found
        return *found, run.word, bool(run.words), run.apart, tuple(run.bytes)

    return [one(*same) for _, same in groupby(kernel.parts(form), like)]


def pointwise(job: Job) -> None:
    kernel, stride = RowPointwise(), job.operator(Conv2d).stride[1]
    source, _ = layouts(job, kernel)
    places, parts = in_blocks((1, 1), source.channels), runs(form_of(job), kernel, source, stride)
    _call(job, "pointwise", places, {}, parts=parts)


def fused(job: Job) -> None:
    source, target = layouts(job, RowFused())
    parts = [Run((part,), target, 1, source) for part in RowFused().parts(form_of(job))]
    _call(job, "fused", in_blocks((1, 1), source.channels), {}, parts=parts)


def spatial(job: Job) -> None:
    op = job.operator(Conv2d)
    source, _ = layouts(job, RowSpatial())
    _, rows, columns, _ = job.tensor(op.parameters[0]).shape
    (part,) = runs(form_of(job), RowSpatial())
    block = source.at(BLOCK) - source.at(0) if source.columns > BLOCK else 0
    _call(
        job, "conv2d", in_blocks((rows, columns), source.channels), {"taps": columns},
        part=part, kernel_h=rows, pairs=-(-source.channels // 2), pad=op.padding[2], block=block,
        move=block * op.stride[1],
    )  # fmt: skip


def wide(job: Job) -> None:
    op, tensors = job.operator(Conv2d), job.program.graph.tensors
    source, _ = layouts(job, RowWide())
    rows, taps = tensors[op.parameters[0]].shape[1], reached_columns(op, tensors)
    left, columns = columns_widened(op, tensors)
    first = left - op.padding[2]  # of the first pixel's window, a tap there would be
    offsets = tuple((tap - taps[0]) * op.dilation[1] for tap in taps)
    words, rest = divmod(source.columns, BLOCK)
    blocks = not source.plane and source.pixels == BLOCK
    _call(
        job, "wide", in_blocks((rows, len(taps)), source.channels),
        {"taps": len(taps), "wide": columns, "offsets": offsets}, taps,
        parts=runs(form_of(job), RowWide()),
        kernel_h=rows, pairs=-(-source.channels // 2), channel=source.apart(0), words=words,
        rest=rest,
        word_step=BLOCK * source.channels if blocks else BLOCK,
        rest_at=source.at(BLOCK * words) if blocks else BLOCK * words,
        rest_channel=rest if blocks else source.columns,
        first=first + taps[0] * op.dilation[1], left=left, right=columns - left - source.columns,
    )  # fmt: skip


def image(job: Job) -> None:
    op = job.operator(Conv2d)
    source, target = layouts(job, RowImage())
    _, rows, columns, depth = job.tensor(op.parameters[0]).shape
    places = weights.order(1, rows * columns * depth)
    stride, pad = op.stride[1], op.padding[2]
    last = (target.columns - 1) * stride - pad + columns
    _call(
        job, "image", places, {}, parts=runs(form_of(job), RowImage()),
        kernel_h=rows, kernel_w=columns, row=columns * depth, words=len(places) // 2,
        stride=stride, pad=pad, edges=pad > 0 or last > source.columns,
    )  # fmt: skip


def in_blocks(kernel: tuple[int, int], channels: int) -> IntArray:
    """(pairs, 2): which elements of a window are side by side, two channels of a tap; -1: none."""
    at = np.arange(kernel[0] * kernel[1] * channels).reshape(*kernel, channels)
    if channels % 2:
        at = np.concatenate([at, np.full((*kernel, 1), -1)], axis=2)
    return at.reshape(*kernel, -1, 2).transpose(0, 2, 1, 3).reshape(-1, 2)


def _call(
    job: Job, word: str, places: IntArray, dot: dict[str, Any], columns: Sequence[int] = (),
    **more: Any,
) -> None:  # fmt: skip
    """Call ``word``'s template.

    Args:
        places: see ``weights.paired``; ``dot``: what the kernel knows of it.
        columns: of the kernel, if not all are read.
        more: what the template knows besides.
    """
    op, finish, tensor = job.operator(Conv2d), end(job), job.tensor(job.op.inputs[0])
    values = job.program.graph.constants[op.parameters[0]]
    if columns:
        never = values.sum((1, 2, 3)) - values[:, :, columns].sum((1, 2, 3))
        finish = replace(finish, starts=finish.starts + never * tensor.zero_point)
        values = values[:, :, columns]
    flat, form, kernel = values.reshape(len(values), -1), form_of(job), KERNELS[word]()
    given, target = kernel.known(form)
    stream = weights.streamed(
        job, flat, places, weights.pairs(len(flat), 2), finish, unroll=kernel.unroll(form),
        kind="row_", stride=op.stride[1], apart=True, **dot,
    )  # fmt: skip
    job.call(
        f"cortex_m/by_row/{word}",
        about(job, op),
        {
            "out": out_row(job),
            **{row.name: row for row in input_rows(job)},
            "scratch": step.scratch(job),
        },
        {},
        job.apart,
        "row",
        given=given,
        target=target,
        uneven=len(flat) % 2 > 0,
        widen="s8" if tensor.dtype.signed else "u8",
        type=f"{tensor.dtype}_t",
        out_type=f"{job.target.dtype}_t",
        zero=tensor.zero_point,
        outside=f"0x{(tensor.zero_point & 0xFFFF) * 0x10001:08X}u",
        **stream,
        **more,
    )  # fmt: skip
