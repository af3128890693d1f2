"""Which order each operator of a flow takes: of those that fit the arena that all need, the one
with the fewest cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.items import Item
from pipeline.search.chains.tiny import Tiny
from pipeline.search.chains.weaves import Weave, can_weave

Orders = Callable[[Flow, int, bool], Iterator[Item]]
"""Of an operator, by its number, the fastest first; slow ones where memory is tight only."""

Cycles = Callable[[Sequence[Item]], float]
"""Modelled, of some items one after the other."""


class Way(Protocol):
    """To run a part of a flow; ``peak`` in nibbles."""

    @property
    def peak(self) -> int: ...

    def within(self, nibbles: int) -> tuple[Item, ...]:
        """In steps as large as fit; it is known to fit."""


@dataclass(frozen=True)
class InTurn:
    """One operator after the other."""

    items: tuple[Item, ...]

    @property
    def peak(self) -> int:
        return max(item.peak for item in self.items)

    def within(self, nibbles: int) -> tuple[Item, ...]:
        return self.items


@dataclass
class Choice:
    """Ways to run a part of a flow.

    Attributes:
        floor: nibbles that none can be below: what is live before, or after.
        first: row-major; nothing is faster.
        others: not looked at yet; ``slow``: only where none of these is small enough.
        found: those that were, with their peaks.
    """

    floor: int
    first: InTurn
    others: Iterator[Way]
    slow: Iterator[Way] = field(default_factory=lambda: iter(()))
    found: list[tuple[Way, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._look(self.first)

    @classmethod
    def of(cls, flow: Flow, number: int, orders: Orders, tight: bool) -> Choice:
        """Of one operator."""
        ways = (InTurn((item,)) for item in orders(flow, number, tight))
        return cls(_floor(flow, Span(number, number + 1)), next(ways), ways)

    @property
    def least(self) -> int:
        """Nibbles."""
        return min(peak for _, peak in self.found)

    def below(self, nibbles: int) -> bool:
        """Looks at more until one takes less; False where none does."""
        while self.least >= nibbles:
            way = next(chain(self.others, self.slow), None) if self.floor < nibbles else None
            if way is None:
                return False
            self._look(way)
        return True

    def within(self, nibbles: int, cycles: Cycles) -> tuple[Item, ...]:
        """Of those that fit the one with the fewest cycles, of equals the first."""
        if self.found[0][1] <= nibbles:
            return self.first.items
        for way in self.others:
            self._look(way)
        fit = [way.within(nibbles) for way, peak in self.found if peak <= nibbles]
        return fit[0] if len(fit) == 1 else min(fit, key=cycles)

    def _look(self, way: Way) -> None:
        self.found.append((way, way.peak))


def chosen(flow: Flow, orders: Orders, cycles: Cycles, tight: bool = False) -> list[Item]:
    """Of the ways with the least peak of all those that go on with more than the row-major order
    only where that is what needs most; ``tight``: however slow."""
    return _smallest([_choice(flow, span, orders, cycles, tight) for span in flow.spans()], cycles)


def _smallest(choices: Sequence[Choice], cycles: Cycles) -> list[Item]:
    """Each as fast as the one that needs most lets it be."""
    while choices:
        most = max(choice.least for choice in choices)
        full = [choice for choice in choices if choice.least == most]
        if any(choice.floor == most for choice in full) or not all(
            choice.below(most) for choice in full
        ):
            return [item for choice in choices for item in choice.within(most, cycles)]
    return []


def _choice(flow: Flow, span: Span, orders: Orders, cycles: Cycles, tight: bool) -> Choice:
    """Layer by layer, each as fast as can be; as small as can be; woven, pixel by pixel, by
    columns, from the last one and, if tiny, in any order only where memory is ``tight``."""
    layers = [Choice.of(flow, number, orders, tight) for number in range(*span)]
    if len(layers) == 1:
        return layers[0]
    fastest = InTurn(tuple(item for layer in layers for item in layer.first.items))

    def others() -> Iterator[Way]:
        smallest = InTurn(tuple(_smallest(layers, cycles)))
        if smallest != fastest:
            yield smallest
        yield from weaves

    able = can_weave(flow, span)
    weaves = Weave.by_rows(flow, span) if able else iter(())
    slow: Iterator[Way] = chain(Weave.pixel_by_pixel(flow, span), Tiny.of(flow, span))
    return Choice(_floor(flow, span), fastest, others(), slow if able and tight else iter(()))


def _floor(flow: Flow, span: Span) -> int:
    return max(flow.nibbles(end) for end in span)
