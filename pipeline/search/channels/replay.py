"""Run a schedule forwards on names alone and say what it holds. Shares nothing with the search.

Each operator must run once, on inputs that are there in the form it needs; a loop may read whole or
in slices only what was complete before it, and what it writes is complete after it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.search.channels.schedule import Loop, Schedule, Step


class Load(NamedTuple):
    """Nibbles held at a step: ``fixed``, and ``channel`` for each channel of the ``loop`` (its
    place in the schedule) that is computed at once."""

    step: Step
    loop: int
    fixed: int
    channel: int


@dataclass
class _Replay:
    graph: Graph
    start: str
    accumulator_nibbles: int
    done: set[str] = field(default_factory=set)
    loads: list[Load] = field(default_factory=list)

    def run(self, plan: Schedule, operators: Collection[Operator]) -> None:
        self.makers = {op.output: op for op in operators}
        whole = {self.start}
        for place, part in enumerate(plan):
            later = self.read_later(plan[place + 1 :])
            if isinstance(part, Loop):
                whole = self.loop(place, part, whole, later)
            else:
                whole = self.full(place, part, whole, later)
            whole &= later
        if self.done != set(self.makers):
            raise ThimbleError(f"never computed: {sorted(set(self.makers) - self.done)}")
        if self.graph.output not in whole:
            raise ThimbleError(f"{self.graph.output} is not there at the end")

    def read_later(self, rest: Schedule) -> set[str]:
        """What the rest of the schedule, or the world, reads."""
        steps = (s for part in rest for s in (part.steps if isinstance(part, Loop) else (part,)))
        found = {self.graph.output}
        for step in steps:
            found |= {step.tensor} if step.rule == "slice" else self.read_by(step)
        return found

    def read_by(self, step: Step) -> set[str]:
        return set() if step.view else set(self.makers[step.tensor].inputs)

    def once(self, step: Step) -> Operator:
        op = self.makers.get(step.tensor)
        if op is None or step.tensor in self.done:
            raise ThimbleError(f"{step.rule} {step.tensor}: nothing makes it, or it is there")
        if step.rule in ("generate", "accumulate") and not op.weighted:
            raise ThimbleError(f"{step.rule} {step.tensor}: {op.name} is no sum over channels")
        self.done.add(step.tensor)
        return op

    def full(self, place: int, step: Step, whole: set[str], later: set[str]) -> set[str]:
        op = self.once(step)
        self.need(step, op.inputs, whole)
        dying = {*op.overwritable(self.graph.tensors), step.over} - {"", *later}
        held = whole if dying else whole | {step.tensor}
        self.loads.append(Load(step, place, sum(map(self.nibbles, held)), 0))
        return whole | {step.tensor}

    def loop(self, place: int, loop: Loop, whole: set[str], later: set[str]) -> set[str]:
        """``parts``: what is there by channels, each with whether it is a view."""
        sums = set(loop.made_by("accumulate"))
        written = sums | set(loop.made_by("concatenate"))
        fixed = sum(map(self.nibbles, whole | written)) + sum(map(self.widened, sums))
        parts: dict[str, bool] = {}
        complete: set[str] = set()
        for number, step in enumerate(loop.steps):
            shape = self.graph.tensors[step.tensor].shape
            if step.rule == "slice":
                self.need(step, (step.tensor,), whole)
                parts[step.tensor] = True
            elif step.rule == "concatenate":
                self.need(step, (step.tensor,), parts)
                complete.add(step.tensor)
            else:
                op = self.once(step)
                self.need(step, op.inputs, whole if step.rule == "generate" else parts)
                if step.rule == "accumulate":
                    complete.add(step.tensor)
                    shape = self.graph.tensors[op.inputs[0]].shape
                else:
                    parts[step.tensor] = step.tensor in written
            if shape[-1] != loop.channels:
                raise ThimbleError(f"{step.tensor} does not have {loop.channels} channels")
            read = {t for s in loop.steps[number:] for t in self.read_by(s)}
            needed = (read - {step.over}) | {step.tensor}
            rings = [t for t, view in parts.items() if not view and t in needed]
            each = sum(self.nibbles(t) // loop.channels for t in rings)
            self.loads.append(Load(step, place, fixed, each))
        return whole | complete

    def need(self, step: Step, names: Collection[str], there: Collection[str]) -> None:
        if missing := set(names) - set(there):
            raise ThimbleError(f"{step.rule} {step.tensor} reads {sorted(missing)}, not there yet")

    def nibbles(self, name: str) -> int:
        tensor = self.graph.tensors[name]
        return tensor.size * max(1, tensor.dtype.bits // 4)

    def widened(self, name: str) -> int:
        each = self.accumulator_nibbles
        return max(0, self.graph.tensors[name].size * each - self.nibbles(name))


def replay(
    plan: Schedule,
    graph: Graph,
    start: str,
    operators: Collection[Operator],
    accumulator_bits: int,
) -> tuple[Load, ...]:
    """What is held at each step of ``plan``, views included.

    Raises:
        ThimbleError: when an operator runs twice, never, or on what is not there.
    """
    machine = _Replay(graph, start, accumulator_bits // 4)
    machine.run(plan, operators)
    return tuple(machine.loads)


def peak(plan: Schedule, loads: Collection[Load]) -> int:
    """The most nibbles held at once."""
    at_once = [min(part.at_once, part.channels) if isinstance(part, Loop) else 0 for part in plan]
    return max((load.fixed + load.channel * at_once[load.loop] for load in loads), default=0)
