"""The fastest way within a limit: each operator whole, or row by row in segments.

A path over frontiers with modelled cycles as its cost. Rows cost the same wherever segments meet,
so segments are cut only where the limit, or an operator that is faster whole, asks for it. An
operator that runs whole reads and makes tensors with channels last, in one piece; so does, at a
frontier beside it, what is made row by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, compress
from math import inf

from pipeline.graph.operator import Operator
from pipeline.kernels import Form, cycles_of_step, offers
from pipeline.schedules.rows import rows_of
from pipeline.search.joint.cuts import Cuts, Offer, Piece, Place, Way, by_rows
from pipeline.search.layouts import form_of_a_row


@dataclass
class Fastest:
    """``rows``: cycles of operators row by row, by the tensors of theirs that lie in blocks."""

    cuts: Cuts
    rows: dict[tuple[object, ...], float] = field(default_factory=dict)

    def within(self, limit: int) -> Way | None:
        """None of its segments holds more than ``limit`` cells; None where there is no such way."""
        return self.cuts.cheapest(
            limit, lambda cost, offer, _: cost + offer.cycles, self._offers, (True, False)
        )

    def _offers(self, start: Place, stop: Place) -> Iterator[Offer]:
        cuts = self.cuts
        names = [set(cuts.frontiers[place.number]) for place in (start, stop)]
        if start.last != stop.last and names[0] & names[1]:
            return
        last = frozenset(chain(*compress(names, (start.last, stop.last))))
        operators = cuts.units.operators[start.number : stop.number]
        cycles = sum(self._row_by_row(op, last) for op in operators)
        for offer in by_rows(start, stop):
            yield offer._replace(cycles=cycles, last=last)
        if len(operators) == 1 and start.last and stop.last:
            yield Offer(Piece(start.number, stop.number, "all"), self._whole(operators[0]), last)

    def _row_by_row(self, op: Operator, plain: frozenset[str]) -> float:
        """``plain``: tensors with channels last."""
        pixels = self.cuts.units.pixels
        if op.output in self.cuts.units.alone:
            return self._cycles(Form.whole(op, self.cuts.units.graph))
        lie = {n: pixels[n] for n in (*op.inputs, op.output) if n in pixels and n not in plain}
        key = op.name, *sorted(lie)
        if key not in self.rows:
            form, graph = form_of_a_row(op, self.cuts.units.graph, lie), self.cuts.units.graph
            rows = rows_of(graph, op.inputs[0] if form.partial else op.output)
            self.rows[key] = rows * self._cycles(form)
        return self.rows[key]

    def _whole(self, op: Operator) -> float:
        """Cycles in one call; infinitely many where not all rows of the inputs are there."""
        units = self.cuts.units
        blocks = [block for name in op.inputs for block in units.blocks[name]]
        there = all(units.needed[block] or units.makers[block] < 0 for block in blocks)
        if not there or (units.streamed and units.graph.start in op.inputs):
            return inf
        return self._cycles(Form.whole(op, units.graph))

    def _cycles(self, form: Form) -> float:
        hardware = self.cuts.units.hardware
        able = offers(form, hardware)
        return cycles_of_step(able[0], form, hardware) if able else inf
