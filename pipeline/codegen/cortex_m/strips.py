"""Outputs of a row that are computed together, one channel of a convolution at a time.

An input pixel is part of the windows of several outputs. Outputs of a strip are chosen so that it
is loaded once for all of them: ``dilation`` columns apart, as many as there are registers for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipeline.codegen.cortex_m.assembly import Block, Line, add, load
from pipeline.kernels.cortex_m.columns import Kind

REGISTERS = ("r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r14")
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
        return len(self.outs) + len(self.weights) <= len(REGISTERS)

    def code(self, kernel_w: int, pairs: int, unroll: int) -> str:
        """C that adds to a0 and so on what a row gives: ``pairs`` of channels of pixels at ``from``
        and of weights at ``w``, ``unroll`` in a round of the loop."""
        step = list(self._step(kernel_w, pairs))
        rounds, left = divmod(pairs, unroll)
        sums = [f"a{n}" for n in range(len(self.outs))]
        weights = [f"w{tap}" for tap in self.weights]
        end = f"const nn_word_t *const end = w + {kernel_w * unroll * rounds};"
        return Block(
            turn=step * unroll,
            rest=step * left,
            rounds=rounds,
            held={
                **{a: ("int32_t ", to) for a, to in zip(sums, REGISTERS, strict=False)},
                "from": ("const nn_word_t *", "r1"),
                "w": ("const nn_word_t *", "r0"),
            },
            scratch=dict(zip(("x", *weights), ("r3", *REGISTERS[len(sums) :]), strict=False)),
            before=[end] * (rounds > 1),
            given={"end": ("const nn_word_t *", "r2")} if rounds > 1 else {},
            stop=["cmp %[w], %[end]"],
        ).code(20)

    def _step(self, kernel_w: int, pairs: int) -> Iterator[Line]:
        """Two channels of the input: each pixel is loaded once for all outputs that it adds to. The
        pointers move on with the last load of each."""
        for tap in reversed(self.weights):
            at = tap - self.weights[0]
            yield load(f"w{tap}", "w", at, 0 if at else kernel_w)
        for column in reversed(self.columns):
            at = pairs * (column - self.columns[0])
            yield load("x", "from", at, 0 if at else 1)
            yield from (add(f"a{out}", "x", f"w{tap}") for out, tap in self.products(column))

    @property
    def instructions(self) -> int:
        """For two channels of the input."""
        return len(self.columns) + len(self.weights) + sum(map(len, self.taps)) + 1


def strips(kinds: Sequence[Kind], stride: int, dilation: int, pad: int) -> list[Strip]:
    """All columns of a row, in the fewest instructions of all ways to cut the order in which
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
