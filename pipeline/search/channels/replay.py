"""Run regions forwards on names alone and say what they hold. Shares nothing with the search."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

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
        found, there = list[Load](), {self.view.names[0]}
        for number, region in enumerate(schedule):
            rest = (op for later in schedule[number + 1 :] for op in later.operators)
            needed = {self.view.names[n] for n in self.view.kept}.union(*(op.inputs for op in rest))
            if isinstance(region, Channels):
                found += self._loop(number, region, there)
                there |= {*region.accumulated, *region.whole}
            else:
                op = region.op
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
        most = [n.channels if isinstance(n, Channels) else 0 for n in schedule]
        for number, fixed, channel in self.loads(schedule):
            if channel:
                most[number] = min(most[number], (limit - fixed) // channel)
        return [
            replace(region, at_once=max(1, n)) if isinstance(region, Channels) else region
            for region, n in zip(schedule, most, strict=True)
        ]

    def _loop(self, number: int, loop: Channels, there: Collection[str]) -> list[Load]:
        tensors, written = self.view.tensors, {*loop.accumulated, *loop.whole}
        sums = (tensors[name] for name in loop.accumulated)
        wider = (tensor.size * self.accumulator_bits // 4 - tensor.nibbles for tensor in sums)
        fixed = self._nibbles({*there, *written}) + sum(max(0, each) for each in wider)
        found, made = list[Load](), set[str]()
        for turn, each in enumerate(loop.passes):
            made |= {each.op.output} - {*loop.accumulated}
            read = {name for later in loop.passes[turn:] for name in later.op.inputs}
            rings = made & (read - {each.over} | {each.op.output}) - written
            found.append(Load(number, fixed, self._nibbles(rings) // loop.channels))
        return found

    def _nibbles(self, names: Collection[str]) -> int:
        return sum(self.view.tensors[name].nibbles for name in names)
