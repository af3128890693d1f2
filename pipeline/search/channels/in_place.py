"""What a core's kernels make in the place of what it is made of, so that more channels pass through
a loop at once, and fewer sums are rounded, within the peak that the published rules need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware
from pipeline.kernels import Form, Part, takes_place
from pipeline.plan.maps import packed
from pipeline.search.channels.schedule import Loop, Schedule, Step, read_by
from pipeline.search.channels.widths import apart


@dataclass(frozen=True)
class Places:
    """``able``: whether a kernel computes some channels of an operator so; none: all of them."""

    graph: Graph
    hardware: Hardware

    def able(self, op: Operator, at_once: int = 0) -> bool:
        tensors = self.graph.tensors
        if not op.weighted or len(op.inputs) != 1:
            return False
        source, target = tensors[op.inputs[0]], tensors[op.output]
        channels = target.shape[-1]
        alike = (source.shape[-1], source.dtype, len(source.shape)) == (channels, target.dtype, 3)
        if not alike:
            return False
        parts = {each.name: _part(each, at_once or channels) for each in (source, target)}
        over = frozenset([source.name])
        form = Form(op, self.graph, parts, overlaps=over, in_place=True)
        return takes_place(form, self.hardware)


def _part(tensor: Tensor, at_once: int) -> Part:
    """All pixels of so many channels, in a ring."""
    sizes, bits = (*tensor.shape[:-1], at_once), tensor.dtype.bits
    ring = at_once if at_once < tensor.shape[-1] else 0
    return Part(sizes, packed(sizes, bits).strides, bits, rings=(0, 0, ring))


def whole(plan: Schedule, makers: Mapping[str, Operator], places: Places, end: str) -> Schedule:
    """``plan`` with operators that run alone in the place of what dies there; the tensor ``end`` is
    needed to the end."""
    found: list[Step | Loop] = []
    for number, part in enumerate(plan):
        if isinstance(part, Step) and places.able(makers[part.tensor]):
            source = makers[part.tensor].inputs[0]
            if source not in {end, *read_by(plan[number + 1 :], makers)}:
                part = replace(part, over=source)
        found.append(part)
    return tuple(found)


def candidates(loop: Loop, makers: Mapping[str, Operator]) -> Loop:
    """``loop`` with everything that continues one ring, read by nothing else, in its place."""
    written = set(loop.made_by("concatenate"))
    rings = set(loop.made_by("generate", "continue")) - written
    reads = [name for step in loop.steps if not step.view for name in makers[step.tensor].inputs]

    def one(step: Step) -> Step:
        source = makers[step.tensor].inputs[0] if not step.view else ""
        able = step.rule == "continue" and step.tensor not in written
        single = source in rings and reads.count(source) == 1
        return replace(step, over=source) if able and single else step

    return replace(loop, steps=tuple(map(one, loop.steps)))


def wider(
    plan: Schedule,
    widest: Callable[[Schedule], Schedule],
    makers: Mapping[str, Operator],
    places: Places,
) -> Schedule:
    """Each loop in as few passes as its room allows, what a kernel can in another's place.

    Args:
        plan: with as many channels at once as fit where nothing takes another's place.
        widest: the same of any schedule.
    """
    roomy = widest(tuple(candidates(p, makers) if isinstance(p, Loop) else p for p in plan))
    found: list[Step | Loop] = []
    for part, other in zip(plan, roomy, strict=True):
        if isinstance(part, Loop) and isinstance(other, Loop):
            found.append(next(_ways(part, other, makers, places), part))
        else:
            found.append(part)
    return tuple(found)


def _ways(
    part: Loop, other: Loop, makers: Mapping[str, Operator], places: Places
) -> Iterator[Loop]:
    """``other`` with the most channels that its kernels take and sums are added evenly of, more
    than ``part`` has; then ``part``, evenly."""
    for at_once in _even(other):
        ops = [makers[step.tensor] for step in other.steps if step.over]
        if at_once > part.at_once and all(places.able(op, at_once) for op in ops):
            yield replace(other, at_once=at_once)
    for at_once in _even(part):
        yield replace(apart(part), at_once=at_once)


def _even(loop: Loop) -> Iterator[int]:
    """Channels at once, the most first: of loops that add sums up, those alone that divide all,
    unless that more than doubles the passes."""
    most = loop.at_once
    numbers = range(most, 0, -1)
    if loop.made_by("accumulate"):
        even = [n for n in numbers if loop.channels % n == 0 and 2 * n > most]
        yield from even or numbers
    else:
        yield from numbers
