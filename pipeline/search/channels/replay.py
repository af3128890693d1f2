"""Run regions forwards on names alone and say what they hold. Shares nothing with the search.

Each operator must run once, on inputs that are there in the form it needs; a loop may read whole or
in slices only what was complete before it, and what it writes is complete after it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pipeline.errors import ThimbleError
from pipeline.graph.operator import Operator
from pipeline.schedules.channels import Channels
from pipeline.schedules.whole import Whole
from pipeline.search.view.whole import View

Schedule = Sequence[Whole | Channels]


class Load(NamedTuple):
    """Nibbles live while an operator runs: ``fixed``, and ``channel`` for each channel that its
    region (a number in the schedule) computes at once."""

    region: int
    fixed: int
    channel: int = 0


@dataclass(frozen=True)
class Replay:
    """Of the operators of ``view``, whose contributions are added up in ``accumulator_bits``."""

    view: View
    accumulator_bits: int

    def loads(self, schedule: Schedule) -> list[Load]:
        """
        Raises:
            ThimbleError: when an operator runs twice, never, or on what is not there.
        """
        wanted, run = self.view.names[1:], [op for region in schedule for op in region.operators]
        if sorted(op.output for op in run) != sorted(wanted):
            raise ThimbleError(f"{sorted(op.name for op in run)} run, for {sorted(wanted)}")
        found, there = list[Load](), {self.view.names[0]}
        for number, region in enumerate(schedule):
            rest = (op for later in schedule[number + 1 :] for op in later.operators)
            needed = {self.view.names[n] for n in self.view.kept}.union(*(op.inputs for op in rest))
            if isinstance(region, Channels):
                found += self._loop(number, region, there)
                there |= {*region.accumulated, *region.whole}
            else:
                op = region.op
                _need(op, there)
                dying = {*op.overwritable(self.view.tensors), region.over} - {"", *needed}
                held = there if dying else there | {op.output}
                found.append(Load(number, self._nibbles(held)))
                there = there | {op.output}
            there &= needed
        return found

    def peak(self, schedule: Schedule) -> int:
        """The most nibbles that are live at once."""
        at_once = [n.at_once if isinstance(n, Channels) else 0 for n in schedule]
        loads = (each.fixed + each.channel * at_once[each.region] for each in self.loads(schedule))
        return max(loads, default=0)

    def widest(self, schedule: Schedule, limit: int) -> Schedule:
        """Each loop with as many channels at once as keep it within ``limit`` nibbles, at least one
        (Pex, remark 4)."""
        found, loads = list[Whole | Channels](), self.loads(schedule)
        for number, region in enumerate(schedule):
            if isinstance(region, Channels):
                room = [
                    (limit - load.fixed) // load.channel
                    for load in loads
                    if load.region == number and load.channel
                ]
                region = replace(region, at_once=max(1, min([region.channels, *room])))
            found.append(region)
        return found

    def _loop(self, number: int, loop: Channels, there: Collection[str]) -> list[Load]:
        tensors, written = self.view.tensors, {*loop.accumulated, *loop.whole}
        sums = (tensors[name] for name in loop.accumulated)
        wider = (tensor.size * self.accumulator_bits // 4 - tensor.nibbles for tensor in sums)
        fixed = self._nibbles({*there, *written}) + sum(max(0, each) for each in wider)
        found, made = list[Load](), set[str]()
        for turn, each in enumerate(loop.passes):
            op = each.op
            if each.rule != "continue" and not op.weighted:
                raise ThimbleError(f"{op.name} is no sum over channels")
            _need(op, there if each.rule == "generate" else made | (set(there) - written))
            by_channel = [] if each.rule == "generate" else [*op.inputs]
            if each.rule != "accumulate":
                made.add(op.output)
                by_channel.append(op.output)
            if any(tensors[name].shape[-1] != loop.channels for name in by_channel):
                raise ThimbleError(f"{by_channel} do not have {loop.channels} channels")
            read = {name for later in loop.passes[turn:] for name in later.op.inputs}
            rings = made & (read - {each.over} | {op.output}) - written
            found.append(Load(number, fixed, self._nibbles(rings) // loop.channels))
        if missing := set(loop.whole) - made:
            raise ThimbleError(f"{sorted(missing)} are not made by channels")
        return found

    def _nibbles(self, names: Collection[str]) -> int:
        return sum(self.view.tensors[name].nibbles for name in names)


def _need(op: Operator, there: Collection[str]) -> None:
    if missing := set(op.inputs) - set(there):
        raise ThimbleError(f"{op.name} reads {sorted(missing)}, not there")
