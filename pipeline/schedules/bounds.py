"""Which box of each tensor a step needs, from its operator's windows.

A box has a range for each axis. Where it begins may depend on loop variables, how many indices it
has does not; a range that moves is not clipped to its tensor here, the slice that it becomes is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.graph.access import Operand, Window
from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.tensor import Box as GraphBox
from pipeline.plan.vocabulary import Buffer, Index, Lin, Slice


class Range(NamedTuple):
    """``size`` indices from ``low`` on."""

    low: Index
    size: int

    @property
    def moves(self) -> bool:
        return isinstance(self.low, Lin) and bool(self.low.coef)

    @property
    def ends(self) -> tuple[int, int]:
        """From where to where, of a range that does not move."""
        assert isinstance(self.low, int)
        return self.low, self.low + self.size

    def clipped(self, extent: int) -> Range:
        """The part of a range that does not move inside of an axis of ``extent``."""
        if isinstance(self.low, Lin):
            return self
        low = min(max(self.low, 0), extent)
        return Range(low, max(0, min(self.low + self.size, extent) - low))


Box = tuple[Range, ...]


def ranges(box: GraphBox) -> Box:
    """``box``, from where to where along each axis, as ranges."""
    return tuple(Range(start, stop - start) for start, stop in box)


def all_of(shape: Sequence[int]) -> Box:
    return tuple(Range(0, extent) for extent in shape)


def part(buffer: Buffer, box: Box, copy: Index = 0) -> Slice:
    """``box`` of a copy of ``buffer``."""
    return Slice(buffer.name, tuple(r.low for r in box), tuple(r.size for r in box), copy)


def operands(op: Operator, tensors: Tensors) -> list[Operand]:
    """All that ``op`` reads, its bias last."""
    terms = [operand for term in op.terms(tensors) for operand in term.operands]
    return [*terms, *op.completion(tensors)]


class Needs:
    """``needs`` of one operator, for many steps: what several of them read, weights most of all, is
    looked up."""

    def __init__(self, op: Operator, tensors: Tensors) -> None:
        self.extents = tensors[op.output].shape
        self.known: dict[tuple[int, tuple[Range, ...]], Box] = {}
        self.operands = [
            (each, tensors[each.tensor].shape, [w.axis for w in each.windows if w.axis is not None])
            for each in operands(op, tensors)
        ]

    def __call__(self, made: Box) -> dict[str, Box]:
        found: dict[str, Box] = {}
        for n, (operand, shape, axes) in enumerate(self.operands):
            key = n, tuple(made[axis] for axis in axes)
            if key not in self.known:
                self.known[key] = _read(operand, made, self.extents, shape)
            box, before = self.known[key], found.get(operand.tensor)
            found[operand.tensor] = box if before is None else together([before, box], shape)
        return found


def needs(op: Operator, tensors: Tensors, made: Box, completed: bool = True) -> dict[str, Box]:
    """For each tensor that ``op`` reads the box that the outputs ``made`` need of it.

    ``completed``: what is read once sums are complete, such as a bias, is among them.
    """
    found: dict[str, Box] = {}
    extents = tensors[op.output].shape
    for operand in operands(op, tensors):
        if not completed and operand in op.completion(tensors):
            continue
        shape = tensors[operand.tensor].shape
        box = _read(operand, made, extents, shape)
        known = found.get(operand.tensor, box)
        found[operand.tensor] = tuple(
            hull(a, b, extent) for a, b, extent in zip(known, box, shape, strict=True)
        )
    return found


def _read(operand: Operand, made: Box, extents: Sequence[int], shape: Sequence[int]) -> Box:
    return tuple(
        read(window, made, extents, extent).clipped(extent)
        for window, extent in zip(operand.windows, shape, strict=True)
    )


def added(op: Operator, tensors: Tensors, made: Box, some: Range) -> dict[str, Box]:
    """As ``needs``, of sums to which the indices ``some`` of the last axis that each goes over are
    added: that of every operand of an operator without groups."""
    found = needs(op, tensors, made, completed=False)
    return {name: (*box[:-1], some) for name, box in found.items()}


def read(window: Window, made: Box, extents: Sequence[int], extent: int) -> Range:
    """The indices that the outputs ``made``, of a tensor of ``extents``, read through ``window``
    along an axis of ``extent``; all of them where that can't be said for every pass of a loop."""
    if window.axis is None:
        return reach(window, 0, 1)
    low, size = made[window.axis]
    if window.divide >= extents[window.axis]:
        return reach(window, 0, 1)
    if window.divide == 1:
        return reach(window, low, size)
    if isinstance(low, int):
        first, last = low // window.divide, (low + size - 1) // window.divide
        return reach(window, first, last - first + 1)
    if all(n % window.divide == 0 for n in (low.const, size, *(f for _, f in low.coef))):
        coef = tuple((name, factor // window.divide) for name, factor in low.coef)
        return reach(window, Lin(low.const // window.divide, coef), size // window.divide)
    return Range(0, extent)


def reach(window: Window, low: Index, size: int) -> Range:
    """What ``size`` steps of the window from step ``low`` on cover."""
    taps = (window.count - 1) * window.dilation + 1
    return Range(_scaled(low, window.stride, window.offset), (size - 1) * window.stride + taps)


def taps(window: Window, made: Iterable[int], extent: int) -> set[int]:
    """The indices of an axis of ``extent`` that steps ``made`` of the window read, one by one: not
    those between them."""
    lows = (index * window.stride + window.offset for index in made)
    every = {low + tap * window.dilation for low in lows for tap in range(window.count)}
    return {index for index in every if 0 <= index < extent}


def _scaled(index: Index, factor: int, offset: int) -> Index:
    if isinstance(index, int):
        return index * factor + offset
    coef = tuple((name, each * factor) for name, each in index.coef)
    return Lin(index.const * factor + offset, coef)


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


def together(boxes: Iterable[Box], shape: Sequence[int]) -> Box:
    """The hull of all ``boxes``, which are of a tensor of ``shape``."""
    first, *rest = boxes
    for box in rest:
        first = tuple(hull(a, b, n) for a, b, n in zip(first, box, shape, strict=True))
    return first
