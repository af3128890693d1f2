"""What runs in which order: operators whole, and loops over channels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.schedules.channels import Channels, Pass
from pipeline.schedules.lower import Region
from pipeline.schedules.whole import Whole
from pipeline.search.channels.search import Move, Rule
from pipeline.search.view.whole import View


@dataclass(frozen=True)
class Step:
    """``rule`` gives ``tensor`` its next form; slices and concatenations are views.

    Attributes:
        over: what it takes the place of, which element-wise operators do unasked.
    """

    rule: Rule
    tensor: str
    over: str = ""

    @property
    def view(self) -> bool:
        return self.rule in ("slice", "concatenate")


@dataclass(frozen=True)
class Loop:
    """``steps`` for ``at_once`` of ``channels`` channels after the other."""

    channels: int
    at_once: int
    steps: tuple[Step, ...]

    def made_by(self, *rules: Rule) -> tuple[str, ...]:
        return tuple(step.tensor for step in self.steps if step.rule in rules)


Schedule = tuple[Step | Loop, ...]


def schedule(view: View, moves: Iterable[Move], at_once: int) -> Schedule:
    """``moves`` in the order of execution, those of each loop together."""
    found: list[Step | Loop] = []
    for move in moves:
        name = view.names[move.tensor]
        step = Step(move.rule, name)
        if move.rule == "full":
            found.append(step)
        elif not move.before.part:  # all that the loop reads is whole: it begins, with a slice, or
            # with a layer that generates its channels
            found.append(Loop(view.tensors[name].shape[-1], at_once, (step,)))
        else:
            loop = found[-1]
            assert isinstance(loop, Loop)
            found[-1] = replace(loop, steps=(*loop.steps, step))
    return tuple(found)


def regions(plan: Schedule, graph: Graph, operators: Iterable[Operator]) -> list[Region]:
    """``plan`` as it is lowered: an operator alone takes the place of an input that dies there."""
    makers = {op.output: op for op in operators}
    found: list[Region] = []
    for place, part in enumerate(plan):
        if isinstance(part, Loop):
            found.append(_channels_of(part, f"channel{place}", makers))
            continue
        op = makers[part.tensor]
        dying = set(op.overwritable(graph.tensors)) - read_by(plan[place + 1 :], makers)
        dying -= {graph.output}
        over = next((name for name in op.inputs if name in dying), part.over)
        found.append(Whole(op, over))
    return found


def _channels_of(loop: Loop, var: str, makers: Mapping[str, Operator]) -> Channels:
    passes = tuple(
        Pass(step.rule, makers[step.tensor], step.over)
        for step in loop.steps
        if step.rule in ("continue", "generate", "accumulate")
    )
    return Channels(var, loop.channels, loop.at_once, passes, loop.made_by("concatenate"))


def read_by(plan: Schedule, makers: Mapping[str, Operator]) -> set[str]:
    """Tensors that some step of ``plan`` reads."""
    steps = (s for p in plan for s in (p.steps if isinstance(p, Loop) else (p,)))
    return {name for s in steps for name in ((s.tensor,) if s.view else makers[s.tensor].inputs)}


def loops(plan: Schedule) -> Iterator[Loop]:
    return (part for part in plan if isinstance(part, Loop))
