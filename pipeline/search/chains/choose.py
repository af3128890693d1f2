"""The choice of each operator's order: the fastest orders that fit the arena that all need."""

from collections.abc import Callable, Iterator, Sequence

from pipeline.search.chains.weaves import Way, by_rows, can_weave, tiny
from pipeline.search.view.pixels import Order, PixelView
from pipeline.search.view.whole import Span

Orders = Callable[[PixelView, int, bool], Iterator[Order]]
"""Orders of an operator, by its number, the fastest first; slow ones only if memory is tight."""


def chosen(view: PixelView, orders: Orders, tight: bool = False) -> list[Order]:
    """Choose ways with the least peak of all, going on with more than the row-major order only for
    the parts that need most; ``tight``: however slow."""
    return _smallest(view, view.spans(), lambda span: _ways(view, span, orders, tight))


def _smallest(
    view: PixelView, spans: Sequence[Span], ways: Callable[[Span], Iterator[Way]]
) -> list[Order]:
    """Choose for each part the first of the ``ways`` to run it that takes no more than the part
    that needs most. As few are looked at as can be: none of a part if what is live before or
    after it needs as much."""
    others = [ways(span) for span in spans]
    now = [next(each) for each in others]
    while now:
        most, less = max(way.peak for way in now), list(now)
        for n, span in enumerate(spans):
            if now[n].peak == most:
                able = others[n] if max(map(view.nibbles, span)) < most else ()
                way = next((each for each in able if each.peak < most), None)
                if way is None:
                    return [order for each in now for order in each.within(most)]
                less[n] = way
        now = less
    return []


def _ways(view: PixelView, span: Span, orders: Orders, tight: bool) -> Iterator[Way]:
    """Layer by layer, each as fast as can be; woven, pixel by pixel and, if tiny, in any order only
    where memory is ``tight``; layer by layer, as small as can be."""

    def alone(layer: Span) -> Iterator[Way]:
        return (_in_turn(order) for order in orders(view, layer.first, tight))

    layers = [Span(number, number + 1) for number in range(*span)]
    if len(layers) == 1:
        yield from alone(span)
        return
    yield _in_turn(*(order for layer in layers for order in next(alone(layer)).within(0)))
    if can_weave(view, span):
        yield from by_rows(view, span, 1 if tight else 2)
        if tight:
            yield from tiny(view, span)
    yield _in_turn(*_smallest(view, layers, alone))


def _in_turn(*orders: Order) -> Way:
    """One operator after the other."""
    return Way(max(order.peak for order in orders), lambda nibbles: orders)
