"""The fastest way within a limit: each operator whole, or row by row in segments.

A path over frontiers with modelled cycles as its cost. Rows cost the same wherever segments meet,
so segments are cut only where the limit, or an operator that is faster whole, asks for it. An
operator that runs whole reads and makes tensors with channels last, in one piece; so does, at a
frontier beside it, what is made row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from pipeline.graph.operator import Operator
from pipeline.hardware import Hardware
from pipeline.kernels import Form, cycles_of_step, offers
from pipeline.schedules.rows import rows_of
from pipeline.search.joint.cuts import ALL, Cuts, Piece
from pipeline.search.joint.segment import WHOLE
from pipeline.search.layouts import form_of_a_row
from pipeline.search.view.rows import adds_rows


class Place(NamedTuple):
    """A frontier, and whether all of its tensors have channels last."""

    number: int
    last: bool


class Way(NamedTuple):
    cycles: float
    pieces: tuple[Piece, ...]
    last: frozenset[str]


@dataclass
class Fastest:
    """
    Attributes:
        whole: of each operator the cycles in one call; infinitely many where it can't be one.
        rows: of operators row by row, by the tensors of theirs that lie in blocks.
    """

    cuts: Cuts
    hardware: Hardware
    whole: list[float] = field(init=False)
    rows: dict[tuple[object, ...], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.whole = [self._whole(op) for op in self.cuts.units.operators]

    def within(self, limit: int) -> Way | None:
        """None of its segments holds more than ``limit`` cells; None where there is no such way."""
        best = {Place(0, True): Way(0.0, (), frozenset())}
        end = len(self.cuts.frontiers) - 1
        for stop in range(1, end + 1):
            if self.cuts.cells[stop] > limit:
                continue
            for place in (Place(stop, True), *([Place(stop, False)] if stop < end else [])):
                for before, way in sorted(best.items(), key=lambda item: item[1][0]):
                    found = self._on(before, way, place, best.get(place), limit)
                    if found is not None:
                        best[place] = found
        return best.get(Place(end, True))

    def _on(self, before: Place, way: Way, to: Place, known: Way | None, limit: int) -> Way | None:
        """``way`` goes on to ``to``, if that is less than what is known."""
        frontiers = self.cuts.frontiers
        ends = [(place, frontiers[place.number]) for place in (before, to)]
        stays = set(ends[0][1]) & set(ends[1][1])
        if before.number == to.number or (stays and before.last != to.last):
            return None
        plain = {name for place, names in ends if place.last for name in names}
        operators = self.cuts.units.operators[before.number : to.number]
        by_rows = sum(self._row_by_row(op, plain) for op in operators)
        ways = [(by_rows, 1), (by_rows, WHOLE)]
        if len(operators) == 1 and before.last and to.last:
            ways.append((self.whole[before.number], ALL))
        for cycles, together in sorted(ways):
            if way.cycles + cycles >= (known.cycles if known else inf):
                return None
            piece = Piece(before.number, to.number, together)
            if self._peak(piece, limit) <= limit:
                return Way(way.cycles + cycles, (*way.pieces, piece), way.last | plain)
        return None

    def _peak(self, piece: Piece, limit: int) -> int:
        if piece.together != ALL:
            return self.cuts.peak(piece, limit)
        units = self.cuts.units
        made = units.blocks[units.operators[piece.start].output]
        return self.cuts.cells[piece.start] + sum(units.sizes[block] for block in made)

    def _row_by_row(self, op: Operator, plain: set[str]) -> float:
        """``plain``: tensors with channels last."""
        pixels = self.cuts.units.pixels
        if op.output in self.cuts.units.alone:
            return self._at_once(op)
        lie = {n: pixels[n] for n in (*op.inputs, op.output) if n in pixels and n not in plain}
        key = op.name, *sorted(lie)
        if key not in self.rows:
            form, graph = form_of_a_row(op, self.cuts.units.graph, lie), self.cuts.units.graph
            able = offers(form, self.hardware)
            rows = rows_of(graph, op.inputs[0] if adds_rows(op, graph) else op.output)
            one = cycles_of_step(able[0], form, self.hardware) if able else inf
            self.rows[key] = rows * one
        return self.rows[key]

    def _whole(self, op: Operator) -> float:
        """Of an operator all rows of whose inputs are there."""
        units = self.cuts.units
        blocks = [block for name in op.inputs for block in units.blocks[name]]
        there = all(block in units.needed or block not in units.makers for block in blocks)
        if not there or (units.streamed and units.graph.input in op.inputs):
            return inf
        return self._at_once(op)

    def _at_once(self, op: Operator) -> float:
        form = Form.whole(op, self.cuts.units.graph)
        able = offers(form, self.hardware)
        return cycles_of_step(able[0], form, self.hardware) if able else inf
