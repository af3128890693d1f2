"""Convolutions of a row: windows of up to four pixels are widened, then all channels are made of
them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline.codegen.binding import kernel_of
from pipeline.codegen.cortex_m import weights
from pipeline.codegen.cortex_m.by_row.rows import Alike, input_rows
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.rows import layouts, out_row
from pipeline.codegen.int8.windows import Windows, met
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.kernels.by_row import BLOCK, MOST_PLANE, RowLayout
from pipeline.kernels.cortex_m.row_convolution import RowConvolution, Source
from pipeline.kernels.taps import Rows


@dataclass(frozen=True, kw_only=True)
class Read:
    """Code that reads some columns of a channel's row; it is the same wherever it does so.

    Attributes:
        begins: where in the row; of the next channel ``apart`` bytes on.
        at: the column, counted from the first that is widened, that it is for.
        words: where words are from there on, and for each of their bytes that is used where that
            goes; ``bytes``: single ones, in the same way.
        kept: whether the first column is one that was widened before.
        follows: where the first column of what is read next goes; 0: it isn't read.
    """

    at: int = field(compare=False)
    begins: int = field(default=0, compare=False)
    apart: int = 0
    words: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()
    bytes: tuple[tuple[int, int], ...] = ()
    kept: bool = False
    follows: int = 0


@dataclass(frozen=True, kw_only=True)
class Run(Read):
    """Code that makes some pixels of what it reads.

    Attributes:
        pairs: of channels, made together.
        to, goes, out_apart: in the output's row the first pixel, from there each of them, and
            bytes from a channel to the next.
    """

    pixels: int
    pairs: int
    to: int = field(compare=False)
    goes: tuple[int, ...]
    out_apart: int

    def place(self, pixel: int, channel: int) -> str:
        """C of where channel ``o`` + ``channel`` of a pixel goes."""
        return f"to[o * {self.out_apart} + {channel * self.out_apart + self.goes[pixel]}]"


def read(given: RowLayout, columns: Mapping[int, int]) -> dict[str, Any]:
    """Return how columns, all as far from the next channel, are read that go to some places."""
    words: dict[int, list[tuple[int, int]]] = {}
    single, low = list[tuple[int, int]](), min(columns)
    stop = given.columns if given.plane else given.full
    for column, to in columns.items():
        # a word of a plane must not end behind the row's
        start = min(low, stop - BLOCK) if given.plane else column - column % BLOCK
        if 0 <= start <= column < start + BLOCK <= stop:
            words.setdefault(given.at(start), []).append((column - start, to))
        else:
            single.append((given.at(column), to))
    begins = min([*words, *(at for at, _ in single)])
    return {
        "begins": begins,
        "apart": given.apart(low),
        "words": tuple((at - begins, tuple(each)) for at, each in words.items()),
        "bytes": tuple((at - begins, to) for at, to in single),
    }


def runs(source: Source) -> list[Alike[Run]]:
    """Write what makes all parts, one after the other."""
    (op, some, given, made), lead = source.layer, source.lead
    stride, found = op.stride[1], list[Run]()
    for part in source.parts:
        to, how, follows = made.at(part.start), dict[str, Any](), lead + BLOCK * stride
        if not (source.first or source.line):
            columns = source.reads(part)[: BLOCK * stride]
            how = read(given, {column: lead + n for n, column in enumerate(columns)})
            how |= {"kept": lead > 0, "follows": follows if follows < source.columns else 0}
        run = Run(
            at=lead + part.start * stride - op.padding[2] + some.columns.start * op.dilation[1],
            pixels=len(part), pairs=source.at_once(part), to=to,
            goes=tuple(made.at(n) - to for n in part), out_apart=made.apart(part.start), **how,
        )  # fmt: skip
        found.append(run)
    return [Alike((run,)) for run in found] if source.fused else Alike.all(found)


def whole(source: Source) -> list[Alike[Read]]:
    """Write what widens all columns before anything is made."""
    given = source.layer.given
    size = min(given.pixels, MOST_PLANE)
    every = (range(given.columns)[n : n + size] for n in range(0, given.columns, size))
    found = (
        Read(at=source.lead + some.start, **read(given, {c: n for n, c in enumerate(some)}))
        for some in every
    )
    return Alike.all(found)


def compute(job: Job) -> None:
    op, kernel = job.operator(Conv2d), kernel_of(job)
    assert isinstance(kernel, RowConvolution)
    layouts(job, kernel, input_rows(job))
    source = kernel.taken(job.form)
    _, some, given, _ = source.layer
    vacant = (0, source.lead), (source.lead + given.columns, source.columns)
    flat, never = met(job, some)
    finish = end(job)
    finish = replace(finish, starts=finish.starts + never)
    fours = some.size == some.channels and some.size % 4 == 0  # weights are those of whole images
    in_order = fours or source.line
    places = weights.order(some.number, some.elements) if in_order else in_blocks(some)
    window, dot = None, dict[str, Any]()
    if source.line:
        window = Windows.of(job, job.rows_view(), some, source.columns)
        window = replace(window, row_edges=False)
    elif source.first:
        taps = range(0, len(some.columns) * op.dilation[1], op.dilation[1])
        dot = {"wide": source.columns, "offsets": tuple(taps)}
    rows = {row.name: row for row in input_rows(job)}
    job.call(
        "cortex_m/by_row/conv2d", {"out": out_row(job), **rows, "scratch": job.scratch},
        kind="row", runs=runs(source), reads=whole(source) if source.first else [], how=source,
        vacant=[(low, stop) for low, stop in vacant if low < stop and source.first], less="",
        kernel_h=len(rows), fours=fours, window=window, pixels=source.columns if window else 0,
        **weights.streamed(
            job, flat, places, weights.pairs(len(flat), 2), finish, unroll=source.unroll,
            stride=op.stride[1], taps=source.taps, apart=True,
            **dot,
        ),
    )  # fmt: skip


def in_blocks(some: Rows) -> IntArray:
    """(pairs, 2): which elements of a window are side by side, two channels of a tap; -1: none."""
    taps, channels = (len(some.rows), len(some.columns)), some.channels
    at = np.arange(some.size).reshape(*taps, channels)
    at = np.pad(at, ((0, 0), (0, 0), (0, channels % 2)), constant_values=-1)
    return at.reshape(*taps, -1, 2).transpose(0, 2, 1, 3).reshape(-1, 2)


WRITERS = {"cortex_m.row_conv2d": compute, "cortex_m.row_fused": compute}
