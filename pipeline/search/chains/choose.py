"""Which order each operator of a flow takes: the fastest that fits the arena that all need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.search.chains.flow import Flow, Span
from pipeline.search.chains.items import Item
from pipeline.search.chains.woven import PIXEL_BY_PIXEL, Way, can_weave, woven

Orders = Callable[[Flow, int, bool], Iterator[Item]]
"""Of an operator, by its number, the fastest first; slow ones where memory is tight only."""

AT_ONCE = (8, 4, 2)
"""Pixels of a block's output, besides a row."""


@dataclass
class Choice:
    """Ways to run a part of a flow: those that are found so far, the fastest first, and others.

    Attributes:
        floor: nibbles that none can be below: what is live before, or after.
    """

    floor: int
    others: Iterator[tuple[Item, ...]]
    found: list[tuple[tuple[Item, ...], int]] = field(default_factory=list)

    @classmethod
    def of(cls, flow: Flow, span: Span, ways: Iterator[tuple[Item, ...]]) -> Choice:
        choice = cls(max(flow.nibbles(end) for end in span), ways)
        choice.another()
        return choice

    @property
    def least(self) -> int:
        """Nibbles."""
        return min(peak for _, peak in self.found)

    def another(self) -> bool:
        """Looks at one more; False where there is none."""
        items = next(self.others, None)
        if items is not None:
            self.found.append((items, max(item.peak for item in items)))
        return items is not None

    def below(self, nibbles: int) -> bool:
        """Looks at more until one takes less; False where none does."""
        while self.least >= nibbles:
            if self.floor >= nibbles or not self.another():
                return False
        return True

    def within(self, nibbles: int) -> tuple[Item, ...]:
        """The first that fits."""
        return next(items for items, peak in self.found if peak <= nibbles)


def chosen(flow: Flow, orders: Orders, tight: bool = False) -> list[Item]:
    """Of the ways with the least peak of all those that go on with more than the row-major order
    only where that is what needs most; ``tight``: however slow."""
    spans = flow.spans()
    choices = [Choice.of(flow, span, _ways(flow, span, orders, tight)) for span in spans]
    return _smallest(choices)


def _smallest(choices: Sequence[Choice]) -> list[Item]:
    """Each as fast as the one that needs most lets it be."""
    while choices:
        most = max(choice.least for choice in choices)
        full = [choice for choice in choices if choice.least == most]
        if any(choice.floor == most for choice in full) or not all(
            choice.below(most) for choice in full
        ):
            return [item for choice in choices for item in choice.within(most)]
    return []


def _ways(flow: Flow, span: Span, orders: Orders, tight: bool) -> Iterator[tuple[Item, ...]]:
    """Layer by layer, each as fast as can be; as small as can be; woven, pixel by pixel, by
    columns and from the last one only where memory is ``tight``."""
    numbers = range(span.first, span.stop)
    if len(numbers) == 1:
        yield from ((item,) for item in orders(flow, span.first, tight))
        return
    layers = [
        Choice.of(flow, Span(n, n + 1), _ways(flow, Span(n, n + 1), orders, tight)) for n in numbers
    ]
    fastest = tuple(item for layer in layers for item in layer.found[0][0])
    yield fastest
    smallest = tuple(_smallest(layers))
    if smallest != fastest:
        yield smallest
    if can_weave(flow, span):
        width = flow.tensors[flow.operators[span.stop - 1].output].shape[1]
        for pixels in (width, *(each for each in AT_ONCE if each < width)):
            yield (woven(flow, span, Way(pixels)),)
        if tight:
            yield from ((woven(flow, span, way),) for way in PIXEL_BY_PIXEL)
