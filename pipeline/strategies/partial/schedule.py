"""What runs in which order: operators whole, and loops over channels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pipeline.strategies.partial.network import Network
from pipeline.strategies.partial.rules import Move, Rule


@dataclass(frozen=True)
class Step:
    """``rule`` gives ``tensor`` its next form; slices and concatenations are views."""

    rule: Rule
    tensor: str

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


def schedule(network: Network, moves: Iterable[Move], at_once: int) -> Schedule:
    """``moves`` in the order of execution, those of each loop together."""
    found: list[Step | Loop] = []
    for move in moves:
        step = Step(move.rule, network.names[move.tensor])
        if move.rule == "full":
            found.append(step)
        elif not move.before.part:  # all that the loop reads is whole: it begins
            found.append(Loop(_channels(network, move), at_once, (step,)))
        else:
            loop = found[-1]
            assert isinstance(loop, Loop)
            found[-1] = replace(loop, steps=(*loop.steps, step))
    return tuple(found)


def _channels(network: Network, move: Move) -> int:
    """A loop begins with a slice, or with a layer that generates its channels."""
    return network.channels[move.tensor]


def loops(plan: Schedule) -> Iterator[Loop]:
    return (part for part in plan if isinstance(part, Loop))
