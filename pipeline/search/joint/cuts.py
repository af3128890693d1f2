"""Where segments meet for the least peak.

A place between two operators is a frontier: the tensors that are made before and read after it, all
of them whole there. A segment goes from one frontier to another; a bottleneck path over frontiers
has the least peak.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.search.joint.segment import WHOLE, on_demand, peak
from pipeline.search.order import least_peak
from pipeline.search.view.rows import Units

LEAST = (1, WHOLE)
"""Rows together that the least peak is tried with."""

ALL = 0
"""Instead of rows together: one call of a kernel makes all of the segment's one operator."""

NEVER = 1 << 60
"""Cells: some of the tensors are never whole."""

EFFORT = 1_000_000
"""Tries of units of a whole network, each of which costs the more the more units there are."""

CLOSE = 8
"""A segment that is within an eighth of the limit is close to it."""


class Piece(NamedTuple):
    """From one frontier to another, with so many rows of a tensor together, or ``ALL``."""

    start: int
    stop: int
    together: int


@dataclass
class Cuts:
    """
    Attributes:
        frontiers: of each place the tensors that are whole there, the first before all operators.
        whole: all of it as one segment, row by row.
        peaks: of segments, as far as they have been asked for; ``above``: of others what their peak
            is at least.
        better: an order of all rows that holds less than that on demand.
    """

    units: Units
    frontiers: list[tuple[str, ...]] = field(init=False)
    whole: Piece = field(init=False)
    peaks: dict[Piece, int] = field(default_factory=dict)
    above: dict[Piece, int] = field(default_factory=dict)
    better: list[int] | None = None

    def __post_init__(self) -> None:
        self.frontiers = frontiers(self.units)
        within = {name for run in self.units.runs for name in run.inner}
        self.cells = [
            sum(self.units.sizes[block] for block in self.units.held(tensors))
            if within.isdisjoint(tensors)
            else NEVER
            for tensors in self.frontiers
        ]
        self.whole = Piece(0, len(self.frontiers) - 1, 1)

    def ends(self, piece: Piece) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.frontiers[piece.start], self.frontiers[piece.stop]

    def order(self, piece: Piece) -> Iterable[int]:
        if piece == self.whole and self.better:
            return self.better
        return on_demand(self.units, *self.ends(piece), piece.together)

    def peak(self, piece: Piece, limit: int) -> int:
        """Cells; some number above ``limit`` where that is exceeded."""
        if piece in self.peaks:
            return self.peaks[piece]
        if (known := self.above.get(piece, 0)) > limit:
            return known
        found = peak(self.units, self.order(piece), piece[:2], *self.ends(piece), limit)
        (self.peaks if found <= limit else self.above)[piece] = found
        return found

    def least(self, most: int = NEVER, effort: int = EFFORT) -> tuple[int, list[Piece]]:
        """The least peak in cells, and the segments that have it: as few as possible; none where
        it is more than ``most``.

        Args:
            effort: for other orders.
        """
        last = len(self.frontiers) - 1
        limit = min(self.peak(self.whole, most), most)
        best: dict[int, tuple[int, int, list[Piece]]] = {0: (self.cells[0], 0, [])}
        for stop in range(1, last + 1):
            if self.cells[stop] > limit:
                continue
            below = limit
            if before := best.get(stop - 1, (0, 0, []))[2]:  # what it may be at most, at once
                start = before[-1].start
                first = self.peak(Piece(start, stop, before[-1].together), limit)
                below = min(limit, max(best[start][0], first))
            for start in sorted(best, key=lambda start: best[start][:2]):
                worst, number, path = best[start]
                least = max(worst, self.cells[stop])
                if stop in best and (least, number + 1) >= best[stop][:2]:
                    continue
                for together in LEAST:
                    piece = Piece(start, stop, together)
                    found = max(worst, self.peak(piece, below))
                    if found <= below and (found, number + 1) < best.get(stop, (limit + 1,))[:2]:
                        best[stop] = found, number + 1, [*path, piece]
                        below = min(below, found)
        if last not in best:
            return NEVER, []
        if effort and self._better(best[last][0], effort):
            return self.peaks[self.whole], [self.whole]
        return best[last][0], best[last][2]

    def _better(self, below: int, effort: int) -> bool:
        """Whether some other order of all rows holds less: a small network's are looked at."""
        order, ends = list(self.order(self.whole)), self.ends(self.whole)
        if effort < len(order) ** 2:
            return False
        view, given = self.units.view(order, ends[1])
        found = least_peak(view, effort // len(order), ())
        if found.peak < below:
            self.better = [order[task - given] for task in found.tasks if task >= given]
            self.peaks[self.whole] = found.peak
        return found.peak < below

    def roomiest(self, limit: int) -> list[Piece]:
        """Of the ways within ``limit`` cells that whose segments come near to it least, since what
        is full is hard to place: rows of each as they are asked for, or layer by layer."""
        near, last = limit - limit // CLOSE, len(self.frontiers) - 1
        best: dict[int, tuple[int, int, list[Piece]]] = {0: (0, 0, [])}
        for stop in range(1, last + 1):
            if self.cells[stop] > limit:
                continue
            for start, (risk, number, path) in list(best.items()):
                least = risk + max(0, self.cells[start] - near, self.cells[stop] - near)
                for together in LEAST:
                    if (least, number + 1) >= best.get(stop, (limit * last, 0))[:2]:
                        break
                    piece = Piece(start, stop, together)
                    most = self.peak(piece, limit)
                    way = risk + max(0, most - near), number + 1
                    if most <= limit and way < best.get(stop, (limit * last, 0))[:2]:
                        best[stop] = *way, [*path, piece]
        return best[last][2]


def frontiers(units: Units) -> list[tuple[str, ...]]:
    """For each place between operators, and both ends, the tensors that are whole there."""
    image, operators = units.graph.input, units.operators
    last = {units.graph.output: len(operators)}
    for number, op in enumerate(operators):
        for name in op.inputs:
            last[name] = max(last.get(name, 0), number)
    found: list[tuple[str, ...]] = [() if units.streamed else (image,)]
    made = [image]
    for number, op in enumerate(operators):
        made.append(op.output)
        found.append(tuple(name for name in made if last.get(name, -1) > number))
    return found
