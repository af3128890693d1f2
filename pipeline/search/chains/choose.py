"""Which order each operator takes: of those that fit the arena that all need, the one with the
fewest cycles."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import Form, Part, cycles_of_step, offers
from pipeline.schedules.bounds import Box, all_of, needs
from pipeline.search.chains.weaves import Way, by_rows, can_weave, tiny
from pipeline.search.view.pixels import Order, PixelView
from pipeline.search.view.whole import Span

Orders = Callable[[PixelView, int, bool], Iterator[Order]]
"""Of an operator, by its number, the fastest first; slow ones where memory is tight only."""


@dataclass(frozen=True)
class Cycles:
    """How long orders take one after the other by what kernels declare, wherever elements come to
    lie: as if all steps were at the first corner."""

    graph: Graph
    hardware: Hardware
    known: dict[tuple[str, Box], float] = field(default_factory=dict)

    def __call__(self, orders: Sequence[Order]) -> float:
        """Infinitely many, where there is no kernel for a step."""
        return sum(map(self._of, orders))

    def _of(self, order: Order) -> float:
        (lows, highs), found = order.boxes, 0.0
        sizes = np.column_stack([lows[:, 0], highs[:, 1:3] - lows[:, 1:3] + 1])
        kinds, times = np.unique(sizes, axis=0, return_counts=True)
        for (number, high, wide), count in zip(kinds.tolist(), times.tolist(), strict=True):
            op, tensors = order.view.operators[number], order.view.tensors
            *image, channels = tensors[op.output].shape
            made = all_of((high, wide, channels // order.groups) if image else (wide,))
            if (op.name, made) not in self.known:
                boxes = needs(op, tensors, made) | {op.output: made}
                parts = {
                    each: Part(tuple(r.size for r in box), (), tensors[each].dtype.bits, "table")
                    for each, box in boxes.items()
                    if each not in self.graph.constants
                }
                form = Form(op, self.graph, parts)
                able = offers(form, self.hardware)
                takes = cycles_of_step(able[0], form, self.hardware) if able else inf
                self.known[op.name, made] = takes
            found += count * self.known[op.name, made]
        return found


class Choice:
    """Ways to run a part of a network, of which as few are looked at as can be.

    Attributes:
        found: those that were; the first is row-major, and nothing is faster.
    """

    def __init__(self, view: PixelView, span: Span, first: Way, others: Iterator[Way]) -> None:
        self.floor = max(view.nibbles(end) for end in span)  # what is live before, or after
        self.found, self.others = [first], others

    @property
    def least(self) -> int:
        """Nibbles."""
        return min(way.peak for way in self.found)

    def below(self, nibbles: int) -> bool:
        """Looks at more until one takes less; False where none does."""
        while self.least >= nibbles:
            way = next(self.others, None) if self.floor < nibbles else None
            if way is None:
                return False
            self.found.append(way)
        return True

    def within(self, nibbles: int, cycles: Cycles) -> tuple[Order, ...]:
        """Of those that fit the one with the fewest cycles, of equals the first."""
        if self.found[0].peak <= nibbles:
            return self.found[0].within(nibbles)
        self.found += self.others
        fit = [way.within(nibbles) for way in self.found if way.peak <= nibbles]
        return fit[0] if len(fit) == 1 else min(fit, key=cycles)


def chosen(view: PixelView, orders: Orders, cycles: Cycles, tight: bool = False) -> list[Order]:
    """Of the ways with the least peak of all those that go on with more than the row-major order
    only where that is what needs most; ``tight``: however slow."""
    return _smallest([_choice(view, span, orders, cycles, tight) for span in view.spans()], cycles)


def _smallest(choices: Sequence[Choice], cycles: Cycles) -> list[Order]:
    """Each as fast as the one that needs most lets it be."""
    while choices:
        most = max(choice.least for choice in choices)
        full = [choice for choice in choices if choice.least == most]
        if any(choice.floor == most for choice in full) or not all(
            choice.below(most) for choice in full
        ):
            return [order for choice in choices for order in choice.within(most, cycles)]
    return []


def _choice(view: PixelView, span: Span, orders: Orders, cycles: Cycles, tight: bool) -> Choice:
    """Layer by layer, each as fast as can be; as small as can be; woven, pixel by pixel and, if
    tiny, in any order only where memory is ``tight``."""
    layers = list[Choice]()
    for number in range(*span):
        ways = (_in_turn(order) for order in orders(view, number, tight))
        layers.append(Choice(view, Span(number, number + 1), next(ways), ways))
    if len(layers) == 1:
        return layers[0]
    fastest = [order for layer in layers for order in layer.found[0].within(0)]

    def others() -> Iterator[Way]:
        smallest = _smallest(layers, cycles)
        if smallest != fastest:
            yield _in_turn(*smallest)
        if can_weave(view, span):
            yield from by_rows(view, span, 1 if tight else 2)
            if tight:
                yield from tiny(view, span)

    return Choice(view, span, _in_turn(*fastest), others())


def _in_turn(*orders: Order) -> Way:
    """One operator after the other."""
    return Way(max(order.peak for order in orders), lambda nibbles: orders)
