"""Convolutions of a row: windows of up to four pixels are widened, then all channels are made of
them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from pipeline.codegen.binding import form_of, kernel_of
from pipeline.codegen.cortex_m import step, weights
from pipeline.codegen.cortex_m.by_row.rows import input_rows, layouts, out_row
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.cortex_m.windows import Windows
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
)
from pipeline.kernels.cortex_m.by_row.layout import BLOCK, RowLayout
from pipeline.kernels.cortex_m.conv2d import Rows
from pipeline.kernels.form import Form

HOW = {
    RowFused: ", two channels of all its pixels at a time: weights that flash gives slowly are\n"
    " * still in its cache for the last pixels",
    RowWide: "; all columns of the rows under the kernel are widened first",
}


@dataclass(frozen=True, kw_only=True)
class Read:
    """Reads of a channel's row, from ``begins`` on, and ``apart`` bytes on of the next one's.

    Attributes:
        words: where words are, and for each of their bytes that is used where that goes.
        bytes: single ones, in the same way.
    """

    begins: int = 0
    apart: int = 0
    words: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()
    bytes: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, source: RowLayout, columns: Mapping[int, int]) -> Read:
        """``columns``: numbers of some, all as far from the next channel, and where they go."""
        words: dict[int, list[tuple[int, int]]] = {}
        single, low = list[tuple[int, int]](), min(columns, default=0)
        stop = source.columns if source.plane else source.full
        for column, to in columns.items():
            # a word of a plane must not end behind the row's
            start = min(low, stop - BLOCK) if source.plane else column - column % BLOCK
            if 0 <= start <= column < start + BLOCK <= stop:
                words.setdefault(source.at(start), []).append((column - start, to))
            else:
                single.append((source.at(column), to))
        begins = min([*words, *(at for at, _ in single)], default=0)
        return cls(
            begins=begins,
            apart=source.apart(low),
            words=tuple((at - begins, tuple(each)) for at, each in words.items()),
            bytes=tuple((at - begins, to) for at, to in single),
        )


@dataclass(frozen=True, kw_only=True)
class Run(Read):
    """Parts whose code is the same, one after the other, and what is read for the first of them.

    Attributes:
        first: pixel of the first part; ``pixels``, ``pairs``: of channels, made together.
        to, goes, out_apart: in the output's row the first part, from there each of its pixels, and
            bytes from a channel to the next.
        count, shift, move: of parts, and bytes to the next one, in the output and in the input.
        carried: whether a part's first column is one that the part before has widened.
        follows: where the first column of what the next part reads goes; 0: it isn't read.
    """

    first: int
    pixels: int
    pairs: int
    to: int
    goes: tuple[int, ...]
    out_apart: int
    count: int = 1
    shift: int = 0
    move: int = 0
    carried: bool = False
    follows: int = 0

    def place(self, pixel: int, channel: int) -> str:
        """C of where channel ``o`` + ``channel`` of a pixel goes."""
        return f"to[o * {self.out_apart} + {channel * self.out_apart + self.goes[pixel]}]"


def runs(form: Form, kernel: RowConvolution, stride: int, pad: int) -> list[Run]:
    source, target = kernel.known(form)
    found = list[Run]()
    for part in kernel.parts(form):
        first, columns, follows = part.first * stride, dict[int, int](), 0
        if isinstance(kernel, RowPointwise):
            columns = {first + n * stride: n for n in range(part.pixels)}
        elif isinstance(kernel, RowSpatial):
            all_columns, words = (BLOCK - 1) * stride + kernel.taps(form), BLOCK * stride
            columns = {first + n: pad + n for n in range(words) if pad + n < all_columns}
            follows = pad + words if pad + words < all_columns else 0
        to = target.at(part.first)
        run = Run(
            first=part.first, pixels=part.pixels, pairs=kernel.at_once(part, form), to=to,
            goes=tuple(target.at(part.first + n) - to for n in range(part.pixels)),
            out_apart=target.apart(part.first), carried=bool(columns) and pad > 0, follows=follows,
            **vars(Read.of(source, columns)),
        )  # fmt: skip
        found.append(run)
    if isinstance(kernel, RowFused):
        return found
    alike = groupby(found, lambda run: replace(run, first=0, to=0, begins=0))
    return [_merged(list(same)) for _, same in alike]


def _merged(same: list[Run]) -> Run:
    first, second = same[0], same[min(1, len(same) - 1)]
    shift, move = second.to - first.to, second.begins - first.begins
    return replace(first, count=len(same), shift=shift, move=move)


def compute(job: Job) -> None:
    op, form, kernel = job.operator(Conv2d), form_of(job), kernel_of(job)
    assert isinstance(kernel, RowConvolution)
    source, target = layouts(job, kernel)
    tensor, some = job.tensor(op.inputs[0]), kernel.some(form)
    rows, columns, depth = len(some.rows), some.columns, some.channels
    flat, never = weights.met(job, some)
    finish = end(job)
    finish = replace(finish, starts=finish.starts + never)
    pixels = max(part.pixels for part in kernel.parts(form))
    fours = (rows, len(columns)) == (1, 1) and depth % 4 == 0  # weights are those of whole images
    in_order = fours or isinstance(kernel, RowImage)
    places = weights.order(some.number, some.elements) if in_order else in_blocks(some)
    window, whole, dot = None, None, dict[str, Any]()
    if isinstance(kernel, RowImage):
        window = replace(Windows.of(job, step.rows_view(job), some, pixels), row_edges=False)
    elif isinstance(kernel, RowWide):
        left, wide = columns_widened(op, form.graph.tensors)
        across = op.dilation[1]
        whole = Whole.of(source, left, wide, left - op.padding[2] + columns.start * across)
        dot = {"wide": wide, "offsets": tuple(n * across for n in range(len(columns)))}
    job.call(
        "cortex_m/by_row/conv2d",
        about(job, op),
        {
            "out": out_row(job),
            **{row.name: row for row in input_rows(job)},
            "scratch": step.scratch(job),
        },
        {},
        job.apart,
        "row",
        runs=runs(form, kernel, op.stride[1], op.padding[2]),
        how=HOW.get(type(kernel), ""),
        given=source,
        target=target,
        kernel_h=rows,
        pairs=-(-depth // 2),
        uneven=len(flat) % 2 > 0,
        type=f"{tensor.dtype}_t",
        out_type=f"{job.target.dtype}_t",
        outside=f"0x{(tensor.zero_point & 0xFFFF) * 0x10001:08X}u",
        fused=isinstance(kernel, RowFused),
        fours=fours,
        window=window,
        pixels=pixels if window else 0,
        less="",
        whole=whole,
        **weights.streamed(
            job, flat, places, weights.pairs(len(flat), 2), finish, unroll=kernel.unroll(form),
            stride=op.stride[1], taps=kernel.taps(form), apart=True, **dot,
        ),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Whole:
    """All columns of a row: ``words`` of four, ``move`` bytes apart, and the ``rest``, with
    ``left`` and ``right`` that lie outside; windows begin at column ``first`` of all."""

    words: int
    move: int
    word: Read
    rest: Read
    left: int
    right: int
    first: int

    @classmethod
    def of(cls, source: RowLayout, left: int, wide: int, first: int) -> Whole:
        words, rest = divmod(source.columns, BLOCK)
        return cls(
            words=words,
            move=source.at(BLOCK) if words > 1 else 0,
            word=Read.of(source, {n: n for n in range(BLOCK * min(words, 1))}),
            rest=Read.of(source, {BLOCK * words + n: n for n in range(rest)}),
            left=left,
            right=wide - left - source.columns,
            first=first,
        )


def in_blocks(some: Rows) -> IntArray:
    """(pairs, 2): which elements of a window are side by side, two channels of a tap; -1: none."""
    taps, channels = (len(some.rows), len(some.columns)), some.channels
    at = np.arange(some.size).reshape(*taps, channels)
    if channels % 2:
        at = np.concatenate([at, np.full((*taps, 1), -1)], axis=2)
    return at.reshape(*taps, -1, 2).transpose(0, 2, 1, 3).reshape(-1, 2)
