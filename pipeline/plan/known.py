"""Boxes of buffers that are known to be whole where they lie, so that no cell need be looked at.

A box becomes known when all of it is written, and ceases to be when anything is written to a buffer
that reaches into its own. Meanwhile its cells need no tokens: who looks at cells has them written
first (``settle``), so that boxes and cells together always say the same as cells alone. What ceased
to be known is put into the cells as late as that, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from pipeline.graph.tensor import Box
from pipeline.plan.elements import Elements
from pipeline.plan.vocabulary import Affine, Buffer
from pipeline.plan.zones import Zone, Zones

MOST_BOXES = 32
"""Known boxes of one buffer; more are written to the cells."""

Key = tuple[int, int]
"""A place of a buffer (its ``id``, for plans keep theirs) and the frame whose elements it holds."""


@dataclass
class _Place:
    """
    Attributes:
        plain: no two elements within the rings share a cell, and all are complete.
    """

    buffer: Buffer
    frame: int
    plain: bool = False
    boxes: list[Box] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.low, self.high = self.buffer.extent
        self.rings = self.buffer.wrap
        if isinstance(self.buffer.map, Affine) and self.buffer.role != "accumulator":
            self.plain = Elements.of(self.buffer, self._once()).apart

    def _once(self) -> Box:
        """Return a box that goes once round each ring."""
        held = zip(self.buffer.held, self.rings, strict=True)
        return tuple((low, min(high, low + ring) if ring else high) for (low, high), ring in held)

    def fits(self, box: Box) -> bool:
        """Check that no ring is too short for ``box``."""
        sides = zip(box, self.rings, strict=True)
        return self.plain and all(not ring or high - low <= ring for (low, high), ring in sides)

    def cells(self, box: Box) -> Iterator[tuple[int, int]]:
        """Name the cells of ``box``, alike for all boxes that lie in the same."""
        sides = zip(box, self.rings, strict=True)
        return ((low % ring if ring else low, high - low) for (low, high), ring in sides)

    def add(self, box: Box) -> bool:
        """Make ``box`` known, as written last; False where it takes the places of others of which
        not all is known then."""
        apart = list[Box]()
        for other in self.boxes:
            if _inside(other, box):
                continue
            if joined := self._joined(other, box):
                self.boxes.remove(other)
                return self.add(joined)
            if self._alias(other, box):
                return False
            apart.append(other)
        self.boxes = [*apart, box]
        return len(self.boxes) <= MOST_BOXES

    def _joined(self, old: Box, new: Box) -> Box | None:
        """Join both where they differ along one axis and meet there: of a ring, the newest part."""
        axes = [axis for axis, (a, b) in enumerate(zip(old, new, strict=True)) if a != b]
        if len(axes) != 1:
            return None
        (axis,) = axes
        (low, high), (first, stop), ring = old[axis], new[axis], self.rings[axis]
        if first > high or low > stop:
            return None
        start, end = min(low, first), max(high, stop)
        if ring and end - start > ring:
            if end == stop:
                start = end - ring
            elif start == first:
                end = start + ring
            else:
                return None
        return (*new[:axis], (start, end), *new[axis + 1 :])

    def _alias(self, one: Box, other: Box) -> bool:
        """Check whether different elements of them may share cells: not where both go into each
        ring, nor where they are apart along an axis."""
        sides = [(a, b, c, d, max(b, d) - min(a, c) <= ring or not ring)
                 for (a, b), (c, d), ring in zip(one, other, self.rings, strict=True)]  # fmt: skip
        apart = any(fits and (b <= c or d <= a) for a, b, c, d, fits in sides)
        return not apart and not all(fits for *_, fits in sides)


def _inside(inner: Box, outer: Box) -> bool:
    for (low, high), (start, stop) in zip(inner, outer, strict=True):
        if low < start or stop < high:
            return False
    return True


class Known:
    """
    Args:
        write: puts the tokens of elements into their cells.
    """

    def __init__(self, zones: Zones, write: Callable[[Elements], None]) -> None:
        self.zones, self.write = zones, write
        self.places: dict[Zone, dict[Key, _Place]] = defaultdict(dict)
        self.seen: dict[Key, _Place] = {}
        self.late: dict[Zone, dict[Hashable, tuple[_Place, Box]]] = defaultdict(dict)

    def holds(self, elements: Elements) -> bool:
        """Check that all of ``elements`` is known to be there; False says nothing."""
        zone = self.zones.of(elements.buffer)
        place = self.places[zone].get((id(elements.buffer), elements.frame))
        if place is None or not elements.size:
            return not elements.size
        return any(_inside(elements.ends, box) for box in place.boxes)

    def put(self, elements: Elements) -> bool:
        """Make complete ``elements`` known, which are written now; False where that can't be, and
        they have to be written to the cells."""
        key = id(elements.buffer), elements.frame
        if key not in self.seen:
            self.seen[key] = _Place(elements.buffer, elements.frame)
        place, box = self.seen[key], _box(elements)
        if box is None or not place.fits(box):
            return False
        self._forget(place.buffer, but=place)
        before = [*place.boxes]
        if not place.add(box):
            self._lose(place, before)
            place.boxes = [box]
        self.places[self.zones.of(place.buffer)][key] = place
        return True

    def forget(self, elements: Elements) -> None:
        """Drop what is known of cells that ``elements``, about to be written, may reach into."""
        self._forget(elements.buffer)
        self._catch_up(elements.buffer)

    def settle(self, elements: Elements) -> None:
        """Write what is known of the cells of ``elements``, which are about to be looked at."""
        self._catch_up(elements.buffer)
        every = self.places[self.zones.of(elements.buffer)]
        for place in _meeting(every.values(), elements.buffer):
            for box in place.boxes:
                self.write(Elements.of(place.buffer, box, place.frame))

    def _forget(self, buffer: Buffer, but: _Place | None = None) -> None:
        every = self.places[self.zones.of(buffer)]
        for place in _meeting(every.values(), buffer):
            if place is not but:
                self._lose(place, place.boxes)
                place.boxes = []
                del every[id(place.buffer), place.frame]

    def _lose(self, place: _Place, boxes: Iterable[Box]) -> None:
        """Note what was written and is no longer known: it is put into cells once somebody looks,
        if nothing has taken all the same cells since."""
        late = self.late[self.zones.of(place.buffer)]
        for box in boxes:
            key = (id(place.buffer), *place.cells(box))
            late.pop(key, None)
            late[key] = place, box

    def _catch_up(self, buffer: Buffer) -> None:
        late = self.late[self.zones.of(buffer)]
        if any(_meeting((place for place, _ in late.values()), buffer)):
            for place, box in late.values():
                self.write(Elements.of(place.buffer, box, place.frame))
            late.clear()


def _meeting(places: Iterable[_Place], buffer: Buffer) -> Iterator[_Place]:
    low, high = buffer.extent
    return (place for place in [*places] if place.low < high and low < place.high)


def _box(elements: Elements) -> Box | None:
    """Return the box that the elements fill; None where they leave some out, or are none."""
    for axis in elements.axes:
        if not (isinstance(axis, range) and axis and axis.step == 1):
            return None
    return elements.ends
