"""Which outputs of a row are computed together, one channel of a convolution at a time.

An input pixel is part of the windows of several outputs. Outputs of a strip are chosen so that it
is loaded once for all of them: ``dilation`` columns apart, as many as there are registers for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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
        """Of the input, that are read."""
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

    def register(self, number: int) -> str:
        """Of outputs, then of weights."""
        return REGISTERS[number]

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
