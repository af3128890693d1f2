"""Convolution of one output channel, see ``kernels/cortex_m/single.py``: what is multiplied has no
zero point in it, since taps may lie outside.

An input pixel is part of the windows of several outputs. Outputs of a strip are chosen so that it
is loaded once for all of them: ``dilation`` columns apart, as many as there are registers for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.codegen.c.kernel import SCRATCH
from pipeline.codegen.cortex_m.assembly import add, block, load
from pipeline.codegen.cortex_m.ending import end
from pipeline.codegen.int8.job import Job
from pipeline.codegen.int8.weights import table
from pipeline.codegen.int8.windows import Windows
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.single import LEAST_CHANNELS
from pipeline.kernels.fast import pairs, unrolled
from pipeline.kernels.taps import Kind, kinds

REGISTERS = 10
"""For outputs and weights: pointers to inputs, weights and their end, and a pixel have the rest."""


@dataclass(frozen=True)
class Strip:
    """``outs``: columns; ``taps``: for each of them (column of the input, tap) that it adds up."""

    outs: tuple[int, ...]
    taps: tuple[tuple[tuple[int, int], ...], ...]

    @cached_property
    def columns(self) -> list[int]:
        """List the columns of the input that are read."""
        return sorted({column for each in self.taps for column, _ in each})

    @cached_property
    def weights(self) -> list[int]:
        """Taps that are multiplied with."""
        return sorted({tap for each in self.taps for _, tap in each})

    def products(self, column: int) -> list[tuple[int, int]]:
        """Numbers of outputs, and the taps that they multiply the pixel at ``column`` with."""
        return [(n, tap) for n, each in enumerate(self.taps) for c, tap in each if c == column]

    @property
    def fits(self) -> bool:
        return len(self.outs) + len(self.weights) <= REGISTERS

    def code(self, kernel_w: int, pairs: int, unroll: int) -> str:
        """C that adds to a0 and so on what a row gives: ``pairs`` of channels of pixels at ``from``
        and of weights at ``w``, ``unroll`` in a round of the loop."""
        rounds, left = divmod(pairs, unroll)
        turn, rest = (
            [line for n in reversed(range(count)) for line in self._step(n, kernel_w, pairs)]
            for count in (unroll, left)
        )
        moves = {"w": (kernel_w * unroll, 4), "from": (unroll, 4)}
        words = ["x", *(f"w{tap}" for tap in self.weights)]
        return block(turn, words, 20, rounds=rounds, moves=moves, rest=rest)

    def _step(self, number: int, kernel_w: int, pairs: int) -> Iterator[str]:
        """Add two channels of the input: each pixel is loaded once for all outputs that it adds
        to."""
        for tap in reversed(self.weights):
            yield load(f"w{tap}", "w", 4 * (number * kernel_w + tap - self.weights[0]))
        for column in reversed(self.columns):
            yield load("x", "from", 4 * (number + pairs * (column - self.columns[0])))
            yield from (add(f"a{out}", "x", f"w{tap}") for out, tap in self.products(column))

    @property
    def instructions(self) -> int:
        """For two channels of the input."""
        return len(self.columns) + len(self.weights) + sum(map(len, self.taps)) + 1


def strips(kinds: Sequence[Kind], stride: int, dilation: int, pad: int) -> list[Strip]:
    """Return all columns of a row, in the fewest instructions of all ways to cut the order in which
    columns that share pixels are neighbours."""
    taps = {column: kind.taps for kind in kinds for column in range(kind.first, kind.stop)}
    order = sorted(taps, key=lambda column: (column * stride % dilation, column))

    def strip(outs: Sequence[int]) -> Strip:
        read = (tuple((c * stride - pad + k * dilation, k) for k in taps[c]) for c in outs)
        return Strip(tuple(outs), tuple(read))

    best: list[tuple[int, list[Strip]]] = [(0, [])]
    for stop in range(1, len(order) + 1):
        ends = ((best[n], strip(order[n:stop])) for n in range(stop))
        ways = ((cost + s.instructions, [*cut, s]) for (cost, cut), s in ends if s.fits)
        best.append(min(ways, key=lambda way: way[0]))
    return best[-1][1]


MOST_PAIRS = 8
"""Most pairs of channels in the code of the innermost loop."""


def in_pieces(job: Job) -> None:
    windows = Windows.of(job, job.source_view)
    rows, columns = windows.axes(job.box)
    whole = windows.channels < LEAST_CHANNELS
    _call(job, "single", windows, rows=rows, columns=columns, whole=whole)


def in_strips(job: Job) -> None:
    op, windows = job.operator(Conv2d), Windows.of(job, job.source_view)
    found, depth = kinds(op, job.program.graph.tensors), windows.channels
    _call(
        job, "strips", windows, pairs=pairs(depth),
        unroll=unrolled(pairs(depth), MOST_PAIRS),
        strips=strips(found, op.stride[1], op.dilation[1], op.padding[2]),
    )  # fmt: skip


def _call(job: Job, word: str, windows: Windows, **more: Any) -> None:
    """``more``: what ``word``'s template knows besides."""
    op, finish = job.operator(Conv2d), end(job)
    starts = job.program.graph.constants[op.parameters[1]][:, None] * bool(finish.quick)
    scratch = {SCRATCH: job.scratch} if word == "strips" else {}
    about = "for each channel what sums begin with, and how they end"
    job.call(
        f"cortex_m/{word}", {"in": job.source_view, "out": job.out(), **scratch},
        {"o": job.part.start}, window=windows, out_rows=job.target.shape[0], weights=table(job),
        end=finish, table=job.table("ends", "int32_t", finish.heads(starts), about), **more,
    )  # fmt: skip


WRITERS = {"cortex_m.single": in_pieces, "cortex_m.strips": in_strips}
