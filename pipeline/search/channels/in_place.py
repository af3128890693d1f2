"""Write channels over those that they are made of, where kernels of the core can, so that more of
them pass through a loop at once, and fewer sums are rounded, within the published rules' peak.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Tensor
from pipeline.hardware import Hardware
from pipeline.kernels import Form, Part, takes_place
from pipeline.plan.maps import packed
from pipeline.schedules.channels import Channels, Pass
from pipeline.search.channels.replay import Schedule


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

    def wider(self, schedule: Schedule, widest: Callable[[Schedule], Schedule]) -> Schedule:
        """Each loop in as few passes as its room allows, what a kernel can in another's place.

        Args:
            schedule: with as many channels at once as fit where nothing takes another's place.
            widest: the same of any schedule.
        """
        roomy = widest([_over(n) if isinstance(n, Channels) else n for n in schedule])
        return [
            next(self._ways(part, other), part)
            if isinstance(part, Channels) and isinstance(other, Channels)
            else part
            for part, other in zip(schedule, roomy, strict=True)
        ]

    def _ways(self, part: Channels, other: Channels) -> Iterator[Channels]:
        """``other`` with the most channels that its kernels take and sums are added evenly of, more
        than ``part`` has; then ``part``, evenly."""
        ops = [each.op for each in other.passes if each.over]
        for at_once in _even(other):
            if at_once > part.at_once and all(self.able(op, at_once) for op in ops):
                yield replace(other, at_once=at_once)
        for at_once in _even(part):
            yield replace(part, at_once=at_once)


def _part(tensor: Tensor, at_once: int) -> Part:
    """All pixels of so many channels, in a ring."""
    sizes, bits = (*tensor.shape[:-1], at_once), tensor.dtype.bits
    ring = at_once if at_once < tensor.shape[-1] else 0
    return Part(sizes, packed(sizes, bits).strides, bits, rings=(0, 0, ring))


def _over(loop: Channels) -> Channels:
    """``loop`` with everything that continues one ring, read by nothing else, in its place."""
    rings = {p.op.output for p in loop.passes if p.rule != "accumulate"} - {*loop.whole}
    reads = [name for op in loop.operators for name in op.inputs]

    def one(each: Pass) -> Pass:
        source = each.op.inputs[0]
        able = each.rule == "continue" and each.op.output in rings
        single = source in rings and reads.count(source) == 1
        return replace(each, over=source) if able and single else each

    return replace(loop, passes=tuple(map(one, loop.passes)))


def _even(loop: Channels) -> Iterator[int]:
    """Channels at once, the most first: of loops that add sums up, those alone that divide all,
    unless that more than doubles the passes."""
    numbers = range(loop.at_once, 0, -1)
    even = [n for n in numbers if loop.channels % n == 0 and 2 * n > loop.at_once]
    yield from (loop.accumulated and even) or numbers


def at_most(schedule: Schedule, channels: int) -> Schedule:
    """No loop with more than ``channels`` at once; with fewer, none takes another's place: kernels
    that do so are for the numbers that were asked for."""
    return [
        replace(n, at_once=channels, passes=tuple(replace(each, over="") for each in n.passes))
        if isinstance(n, Channels) and n.at_once > channels
        else n
        for n in schedule
    ]
