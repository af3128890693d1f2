"""Cuts between segments for the least peak.

A place between two operators is a frontier: the tensors that are made before and read after it, all
of them whole there. A segment goes from one frontier to another; a bottleneck path over frontiers
has the least peak.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import chain, pairwise, tee
from math import inf
from typing import Literal, NamedTuple

from pipeline.search.joint.segment import on_demand, peak
from pipeline.search.order import WIDTHS, beam, least_peak
from pipeline.search.view.rows import Units
from pipeline.search.view.whole import View

NEVER = 1 << 60
"""Cells: some of the tensors are never whole."""

EFFORT = 1_000_000
"""Tries of units of a whole network, each of which costs the more the more units there are."""

ROWS = 3_000_000
"""Looked at in all segments, of a microsecond or two; each place where segments meet may take its
share of what is left. Beyond it segments have one operator, or are the whole network."""

NEAR = 256
"""Divisor of a bound: memory that exceeds it by no more than that part of it is near."""

CLOSE = 8
"""A segment that is within an eighth of the limit is close to it."""

FEW = 48
"""Units of a network that is small."""


class Piece(NamedTuple):
    """From one frontier to another: ``rows`` on demand, ``layers`` one after the other, each row by
    row, or ``all`` of one operator in one call of a kernel."""

    start: int
    stop: int
    form: Literal["rows", "layers", "all"] = "rows"


class Place(NamedTuple):
    """A frontier, and whether all of its tensors have channels last."""

    number: int
    last: bool = True


class Offer(NamedTuple):
    """A piece, the modelled cycles that it takes, and which tensors have channels last for it."""

    piece: Piece
    cycles: float = 0.0
    last: frozenset[str] = frozenset()


class Way(NamedTuple):
    """Segments one after the other, and what they cost."""

    cost: float
    pieces: tuple[Piece, ...] = ()
    last: frozenset[str] = frozenset()

    @property
    def rank(self) -> tuple[float, int]:
        return self.cost, len(self.pieces)

    def on(self, offer: Offer, cost: float) -> Way:
        pieces, piece = self.pieces, offer.piece
        if pieces and piece.form == pieces[-1].form == "layers":  # one goes on
            pieces, piece = pieces[:-1], piece._replace(start=pieces[-1].start)
        return Way(cost, (*pieces, piece), self.last | offer.last)


Offers = Callable[[Place, Place], Iterable[Offer]]
"""Pieces from one place to another."""

Cost = Callable[[float, Offer, int], float]
"""Cost of a way continued by a piece that holds so many cells, given the way's cost so far."""


def most(cost: float, _: Offer, cells: int) -> float:
    """Return the most cells that a way holds."""
    return max(cost, cells)


def by_rows(start: Place, stop: Place) -> Iterator[Offer]:
    """Rows as they are asked for; of one operator also as a layer of several."""
    yield Offer(Piece(start.number, stop.number))
    if start.number == stop.number - 1:
        yield Offer(Piece(start.number, stop.number, "layers"))


@dataclass
class Cuts:
    """
    Attributes:
        frontiers: of each place the tensors that are whole there, the first before all operators.
        whole: all of it as one segment, row by row.
        peaks: of segments that have been looked at, and whether to the end: others hold at least
            so much.
        better: an order of all rows that holds less than that on demand.
        last: a piece whose order was asked for, and the order, made as far as it was.
        effort: how much of it there is, as a multiple of ``ROWS`` and ``EFFORT``.
        left: rows that may still be looked at.
    """

    units: Units
    frontiers: list[tuple[str, ...]] = field(init=False)
    whole: Piece = field(init=False)
    peaks: dict[Piece, tuple[int, bool]] = field(default_factory=dict)
    better: list[int] | None = None
    last: tuple[Piece, Iterator[int]] = Piece(0, 0), iter(())
    effort: float = 1.0
    left: int = ROWS

    def __post_init__(self) -> None:
        units, graph = self.units, self.units.graph
        view = View.of(graph.tensors, graph.starts, units.operators, *graph.ends)
        self.frontiers = [() if units.streamed else graph.starts, *map(tuple, view.live[1:])]
        within = {name for run in units.runs for name in run.inner}
        self.cells = [
            sum(units.sizes[block] for block in units.held(tensors))
            if within.isdisjoint(tensors)
            else NEVER
            for tensors in self.frontiers
        ]
        self.whole = Piece(0, len(self.frontiers) - 1)

    def ends(self, piece: Piece) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.frontiers[piece.start], self.frontiers[piece.stop]

    def order(self, piece: Piece) -> Iterable[int]:
        if piece == self.whole and self.better:
            return self.better
        layers = [Piece(number, number + 1) for number in range(*piece[:2])]
        return chain.from_iterable(map(self._rows, [piece] if piece.form == "rows" else layers))

    def _rows(self, piece: Piece) -> Iterator[int]:
        """Make rows on demand: of those of a piece that isn't much longer, in its order."""
        begin, ((start, stop, _), order) = self.units.begins[piece.start], self.last
        if stop != piece.stop or not 2 * piece.start - stop <= start <= piece.start:
            (order,) = tee(on_demand(self.units, begin, self.frontiers[piece.stop]), 1)
            self.last = piece, order
        return (unit for unit in copy(order) if unit >= begin)

    def peak(self, piece: Piece, limit: int) -> int:
        """Cells; some number above ``limit`` where that is exceeded."""
        known, all_seen = self.peaks.get(piece, (0, False))
        if all_seen or known > limit:
            return known
        if piece.form == "all":
            made = self.units.blocks[self.units.operators[piece.start].output]
            found = self.cells[piece.start] + sum(self.units.sizes[block] for block in made)
        else:
            order, ends = self.order(piece), self.ends(piece)
            found, looked = peak(self.units, order, piece[:2], *ends, limit)
            self.left -= looked
        self.peaks[piece] = found, found <= limit
        return found

    def least(self, most: int = NEVER, effort: int = EFFORT) -> tuple[int, list[Piece]]:
        """Return the least peak in cells, and the segments that have it: as few as possible; none
        where it is more than ``most``.

        Args:
            effort: for other orders.
        """
        whole = self.peak(self.whole, most)
        if (found := self.cheapest(min(whole, most))) is None:
            return (whole, [self.whole]) if whole <= most else (NEVER, [])
        if effort and self._better(int(found.cost), int(self.effort * effort)):
            return self.peak(self.whole, most), [self.whole]
        return int(found.cost), list(found.pieces)

    def roomiest(self, limit: int) -> list[Piece]:
        """Choose of the ways within ``limit`` cells that whose segments come near to it least,
        since what is full is hard to place. Empty where none is found."""
        near = limit - limit // CLOSE
        found = self.cheapest(limit, lambda cost, _, cells: cost + max(0, cells - near))
        return list(found.pieces) if found else []

    def sparse(self, limit: int) -> Iterator[list[int]]:
        """Yield orders of a small network's rows, within ``limit`` cells, that hold little all the
        time. Of alike ones that which makes rows from the first on, then that which makes every
        other layer's, by depth, from the last on: what grows in place has to."""
        units, every, depth = self.units, set(self.order(self.whole)), Counter[str]()
        if len(every) > self.effort * FEW:
            return
        for op in units.operators:
            depth[op.output] = 1 + max(depth[name] for name in op.inputs)
        layers = [range(*ends) for ends in pairwise(units.begins)]
        for turn in (1, -1):
            order = list[int]()
            for op, layer in zip(units.operators, layers, strict=True):
                alike = all(getattr(units.units[n].step, "kind", "") == "make" for n in layer)
                order += layer[:: turn ** depth[op.output] if alike else 1]
            order = [unit for unit in order if unit in every]
            view, given = units.view(order, units.graph.ends)
            tasks = beam(view, WIDTHS[-1], lambda sum, held: sum + held if held <= limit else inf)
            if view.peak(tasks) <= limit:
                yield [order[task - given] for task in tasks if task >= given]

    def cheapest(
        self,
        limit: int,
        cost: Cost = most,
        offers: Offers = by_rows,
        inside: Sequence[bool] = (True,),
    ) -> Way | None:
        """The cheapest way whose segments hold ``limit`` cells at most, of the fewest segments.

        Args:
            inside: whether tensors have channels last at frontiers between segments.
        """
        self.left, end = int(self.effort * ROWS), self.whole.stop
        best = {Place(0): Way(self.cells[0] if cost is most else 0.0)}
        for stop in range(1, end + 1):
            if self.cells[stop] > limit:
                continue
            share, bound = self.left // (end + 1 - stop), self._at_most(best, stop, limit, cost)
            first, keep = min(stop - 1, stop - share), self.left - share
            ways = [(place, way) for place, way in best.items() if place.number >= first]
            ways.sort(key=lambda each: each[1].rank)
            for to in [Place(stop, last) for last in (inside if stop < end else (True,))]:
                for place, way in ways:
                    if place.number < stop - 1 and self.left < keep:
                        continue
                    for offer in offers(place, to):
                        found = self._on(way, offer, bound, cost, best.get(to))
                        best |= {to: found} if found else {}
        return best.get(Place(end))

    def _at_most(self, best: Mapping[Place, Way], stop: int, limit: int, cost: Cost) -> int:
        """Bound what the way to ``stop`` holds, if that is its cost: the last segment goes on."""
        before = best.get(Place(stop - 1))
        if cost is not most or not before or not before.pieces or self.left <= 0:
            return limit
        last = before.pieces[-1]._replace(stop=stop)
        start = best.get(Place(last.start))
        return int(min(limit, max(start.cost, self.peak(last, limit)))) if start else limit

    def _on(self, way: Way, offer: Offer, limit: int, cost: Cost, known: Way | None) -> Way | None:
        """``way`` goes on with ``offer`` within ``limit``, if that is better than what is known."""
        piece = offer.piece

        def holding(cells: int) -> Way | None:
            found = way.on(offer, cost(way.cost, offer, cells))
            return found if cells <= limit and (not known or found.rank < known.rank) else None

        ends = max(self.cells[piece.start], self.cells[piece.stop])  # it holds no less
        return holding(self.peak(piece, limit)) if holding(ends) else None

    def _better(self, below: int, effort: int) -> bool:
        """Check whether another order of all rows holds less, by more than is near: rows on demand
        are easier to place. A small network's are searched."""
        order, ends = list(self.order(self.whole)), self.ends(self.whole)
        if not (width := min(WIDTHS[-1], effort // len(order) ** 2)):
            return False
        view, given = self.units.view(order, ends[1])
        found, below = least_peak(view, effort // len(order), (width,)), below - below // NEAR
        if found.peak < below:
            self.better = [order[task - given] for task in found.tasks if task >= given]
            self.peaks[self.whole] = found.peak, True
        return found.peak < below
