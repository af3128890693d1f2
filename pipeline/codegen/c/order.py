"""Orders other than row by row: lines of pixels, each a step further than the one before. (0, 0) is
the low corner of what is computed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import add, sub
from typing import NamedTuple

from pipeline.codegen.constants import stored
from pipeline.codegen.render import render
from pipeline.errors import ThimbleError
from pipeline.plan.vocabulary import Compute

MOST = 0x7FFF
"""Largest index."""

Point = tuple[int, ...]


class Line(NamedTuple):
    """``number`` points; each coordinate of ``start`` grows by ``step`` from one to the next."""

    start: Point
    step: Point
    number: int


def straight(points: Sequence[Point], most: int = MOST) -> list[Line]:
    """Few lines, of ``most`` points each, whose concatenation is ``points``."""
    found, first = list[Line](), 0
    while first < len(points):
        last, stop = points[first], min(first + most, len(points))
        steps = [tuple(map(sub, b, a)) for a, b in pairwise(points[first : min(first + 4, stop)])]
        step, count = steps[0] if steps else (0,) * len(last), 1
        while first + count < stop and points[first + count] == tuple(map(add, last, step)):
            last, count = points[first + count], count + 1
        if count == 2 and len(steps) == 3 and steps[1] == steps[2]:
            count = 1  # two points are on a line with anything, the second one on a longer one
        found.append(Line(points[first], step if count > 1 else (0,) * len(step), count))
        first += count
    return found


@dataclass
class Lines:
    """The table that all steps share, ``nn_orders``."""

    held: list[Line] = field(default_factory=list)

    def add(self, lines: Sequence[Line]) -> int:
        """Return where ``lines`` begin, added if need be; the same stretch is held once."""
        return stored(self.held, list(lines))

    def code(self) -> str:
        """C of the table; "" without any."""
        return render("int8/lines.c.j2", lines=self.held) if self.held else ""


def lines(step: Compute) -> list[Line]:
    """Return the step's order.

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
    return straight(places)
