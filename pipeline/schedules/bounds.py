"""Boxes of each tensor that a step needs, from its operator's windows.

A box has a range for each axis. Where it begins may depend on loop variables, how many indices it
has does not; a range that moves is not clipped to its tensor here, the slice that it becomes is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from pipeline.graph.access import Window
from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.tensor import Box as GraphBox
from pipeline.plan.vocabulary import Buffer, Index, Lin, Slice


class Range(NamedTuple):
    """``size`` indices from ``low`` on."""

    low: Index
    size: int

    @property
    def ends(self) -> tuple[int, int]:
        """From where to where, of a range that does not move."""
        assert isinstance(self.low, int)
        return self.low, self.low + self.size

    def clipped(self, extent: int) -> Range:
        """Return the part of a range that does not move inside of an axis of ``extent``."""
        if isinstance(self.low, Lin):
            return self
        low = min(max(self.low, 0), extent)
        return Range(low, max(0, min(self.low + self.size, extent) - low))


Box = tuple[Range, ...]
Shape = tuple[int, ...]


def ranges(box: GraphBox) -> Box:
    """``box``, from where to where along each axis, as ranges."""
    return tuple(Range(start, stop - start) for start, stop in box)


@cache
def all_of(shape: tuple[int, ...]) -> Box:
    return tuple(Range(0, extent) for extent in shape)


def part(buffer: Buffer, box: Box, copy: Index = 0) -> Slice:
    """``box`` of a copy of ``buffer``."""
    return _slice(buffer.name, box, copy)


@lru_cache(1 << 12)
def _slice(name: str, box: Box, copy: Index) -> Slice:
    """Make it once: steps share those of weights, and layers the corners of their rows."""
    return Slice(name, *_corner(box), copy)


@lru_cache(1 << 12)
def _corner(box: Box) -> tuple[tuple[Index, ...], tuple[int, ...]]:
    return tuple(each.low for each in box), tuple(each.size for each in box)


class Needs:
    """``needs`` of one operator, for many steps: what several of them, or of operators alike, read,
    weights most of all, is looked up."""

    def __init__(self, op: Operator, tensors: Tensors) -> None:
        out, self.tensors = tensors[op.output].shape, tensors
        self.operands = [
            (each.tensor, _reader(each.windows, out, tensors[each.tensor].shape))
            for each in op.reads(tensors)
        ]

    def __call__(self, made: Box) -> dict[str, Box]:
        found: dict[str, Box] = {}
        for name, each in self.operands:
            box, before = each(made), found.get(name)
            shape = self.tensors[name].shape
            found[name] = box if before is None else tuple(map(hull, before, box, shape))
        return found


@lru_cache(1 << 8)
def _reader(windows: tuple[Window, ...], out: Shape, shape: Shape) -> Callable[[Box], Box]:
    """Return what says what operands alike need of a tensor of ``shape``; it is kept."""
    axes = (window.axis for window in windows if window.axis is not None)
    of = itemgetter(*axes, slice(0))  # () of none
    known = dict[Any, Box]()

    def needed(made: Box) -> Box:
        if (found := known.get(key := of(made))) is None:
            found = known[key] = tuple(
                read(window, made, out, extent).clipped(extent)
                for window, extent in zip(windows, shape, strict=True)
            )
        return found

    return needed


def added(op: Operator, tensors: Tensors, made: Box, some: Range, axis: int = -1) -> dict[str, Box]:
    """Return ``Needs`` of sums to which the indices ``some`` of the input's ``axis``, counted from
    the end, are added: of weights those that meet them; all of weights in groups."""
    extent, boxes = tensors[op.inputs[0]].shape[axis], Needs(op, tensors)(made)
    found = dict[str, Box]()
    for name in (operand.tensor for term in op.terms(tensors) for operand in term.operands):
        box = list(boxes[name])
        if tensors[name].shape[axis] == extent:
            box[axis] = some
        found[name] = tuple(box)
    return found


def read(window: Window, made: Box, extents: Sequence[int], extent: int) -> Range:
    """The indices that the outputs ``made``, of a tensor of ``extents``, read through ``window``
    along an axis of ``extent``; all of them where that can't be said for every pass of a loop."""
    by, (low, size) = window.divide, Range(0, 1)
    if window.axis is not None and by < extents[window.axis]:
        low, size = made[window.axis]
    if isinstance(low, int):
        return reach(window, low // by, (low + size - 1) // by - low // by + 1)
    if any(n % by for n in (low.const, size, *(factor for _, factor in low.coef))):
        return Range(0, extent)
    coef = tuple((name, factor // by) for name, factor in low.coef)
    return reach(window, Lin(low.const // by, coef), size // by)


def reach(window: Window, low: Index, size: int) -> Range:
    """Return the range that ``size`` steps of the window from step ``low`` on cover."""
    taps = (window.count - 1) * window.dilation + 1
    return Range(low * window.stride + window.offset, (size - 1) * window.stride + taps)


def taps(window: Window, made: Iterable[int], extent: int) -> set[int]:
    """Return the indices of an axis of ``extent`` that steps ``made`` of the window read, one by
    one: not those between them."""
    lows = (index * window.stride + window.offset for index in made)
    every = {low + tap * window.dilation for low in lows for tap in range(window.count)}
    return {index for index in every if 0 <= index < extent}


def hull(one: Range, other: Range, extent: int) -> Range:
    """Both; all of the axis where they don't move together."""
    if isinstance(one.low, int) and isinstance(other.low, int):
        low = min(one.low, other.low)
        return Range(low, max(one.low + one.size, other.low + other.size) - low)
    a, b = (low if isinstance(low, Lin) else Lin(low) for low in (one.low, other.low))
    if dict(a.coef) != dict(b.coef):
        return Range(0, extent)
    low = min(a.const, b.const)
    size = max(a.const + one.size, b.const + other.size) - low
    return Range(Lin(low, a.coef), size)
