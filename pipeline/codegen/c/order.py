"""Orders other than row by row: lines of pixels, each a step further than the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.codegen.constants import stored
from pipeline.codegen.render import render
from pipeline.errors import ThimbleError
from pipeline.plan.vocabulary import Compute

MOST = 0x7FFF
"""Of an index."""


class Line(NamedTuple):
    """``number`` pixels from (y, x) on, ``down`` and ``right`` from one to the next. (0, 0) is the
    low corner of what is computed."""

    y: int
    x: int
    down: int
    right: int
    number: int


@dataclass
class Lines:
    """The table that all steps share, ``nn_orders``."""

    held: list[Line] = field(default_factory=list)

    def add(self, lines: Sequence[Line]) -> int:
        """Where they begin; the same stretch is held once."""
        return stored(self.held, list(lines))

    def code(self) -> str:
        """C of the table; "" without any."""
        return render("int8/lines.c.j2", lines=self.held) if self.held else ""


def lines(step: Compute) -> list[Line]:
    """The step's order.

    Raises:
        ThimbleError: when its units are not pixels, all channels of each; or less, but channels in
            their order.
    """
    unit = step.unit or (1,) * len(step.out.size)
    firsts = range(0, step.out.size[2], unit[2]) if len(unit) == 3 else [0]
    places = [(0, *o) if len(o) == 1 else o[:2] for o in step.order[:: len(firsts)]]
    channels = [o[2] if len(o) > 2 else 0 for o in step.order]
    if (
        len(unit) > 3
        or max(unit[:2]) > 1
        or channels != [*firsts] * len(places)
        or max((max(p) for p in places), default=0) > MOST
    ):
        raise ThimbleError(
            f"{step.op}: code for this core takes an order of pixels, all channels of each at "
            f"once; the plan has units of {unit}"
        )
    return _lines([(y, x) for y, x in places])


def _lines(places: Sequence[tuple[int, int]]) -> list[Line]:
    """The longest stretches from the first place on."""
    found, start = list[Line](), 0
    while start < len(places):
        (y, x), down, right, stop = places[start], 0, 0, start + 1
        if stop < len(places):
            down, right = places[stop][0] - y, places[stop][1] - x
        while stop < len(places) and places[stop] == (
            y + (stop - start) * down,
            x + (stop - start) * right,
        ):
            stop += 1
        if stop - start == 2 < len(places) - start:  # two points are on a line with anything
            stop, down, right = start + 1, 0, 0
        found.append(Line(y, x, down, right, stop - start))
        start = stop
    return found
