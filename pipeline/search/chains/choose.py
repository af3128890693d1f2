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
    """Ways to run a part of a flow that are found so far, and others."""

    others: Iterator[tuple[Item, ...]]
    found: list[tuple[tuple[Item, ...], int]] = field(default_factory=list)

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

    def within(self, nibbles: int) -> tuple[Item, ...]:
        """The first that fits."""
        return next(items for items, peak in self.found if peak <= nibbles)


def chosen(flow: Flow, orders: Orders, tight: bool = False) -> list[Item]:
    """Of the ways with the least peak of all those that go on with more than the row-major order
    only where that is what needs most; ``tight``: however slow."""
    choices = [Choice(_ways(flow, span, orders, tight)) for span in flow.spans()]
    for choice in choices:
        choice.another()
    while True:
        most = max((choice.least for choice in choices), default=0)
        if not any(choice.another() for choice in choices if choice.least == most):
            break
    return [item for choice in choices for item in choice.within(most)]


def _ways(flow: Flow, span: Span, orders: Orders, tight: bool) -> Iterator[tuple[Item, ...]]:
    """Layer by layer, each as fast as can be; as small as can be; woven, pixel by pixel, by
    columns and from the last one only where memory is ``tight``."""
    numbers = range(span.first, span.stop)
    if len(numbers) == 1:
        yield from ((item,) for item in orders(flow, span.first, tight))
        return
    found = [list(orders(flow, number, tight)) for number in numbers]
    yield tuple(items[0] for items in found)
    if any(len(items) > 1 for items in found):
        yield tuple(_smallest(items) for items in found)
    if can_weave(flow, span):
        width = flow.tensors[flow.operators[span.stop - 1].output].shape[1]
        for pixels in (width, *(each for each in AT_ONCE if each < width)):
            yield (woven(flow, span, Way(pixels)),)
        if tight:
            yield from ((woven(flow, span, way),) for way in PIXEL_BY_PIXEL)


def _smallest(items: Sequence[Item]) -> Item:
    return min(items, key=lambda item: item.peak)
