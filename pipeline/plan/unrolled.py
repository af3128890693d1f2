"""Unroll a plan's tracks and run them side by side, one step at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pipeline.plan.vocabulary import Loop, Plan, PlanError, Signal, Step, Wait, value

Env = dict[str, int]
Choice = Callable[[list[int]], int] | None


class Event(NamedTuple):
    """One step of one track, with the values of the loop variables around it."""

    track: int
    step: Step
    env: Env

    def __str__(self) -> str:
        place = ", ".join(f"{name}={n}" for name, n in self.env.items())
        name = getattr(self.step, "op", getattr(self.step, "counter", ""))
        return f"{type(self.step).__name__.lower()} {name}{f' at {place}' if place else ''}"


def unroll(steps: tuple[Step, ...], env: Env) -> Iterator[tuple[Step, Env]]:
    """Yield the steps in order with loops expanded; loop variables appear in ``env``."""
    for step in steps:
        if isinstance(step, Loop):
            for n in range(step.count):
                yield from unroll(step.body, {**env, step.var: n})
        else:
            yield step, env


def walk(plan: Plan, choose: Choice = None) -> Iterator[Event]:
    """Yield every step in an order that the counters allow.

    ``choose`` picks the next track among those that can go on, by default the first; a race-free
    plan gives the same result whatever it picks.

    Raises:
        PlanError: when every unfinished track waits (deadlock).
    """
    cursors = [unroll(track.steps, {}) for track in plan.tracks]
    heads = [next(cursor, None) for cursor in cursors]
    counters: Counter[str] = Counter()

    def ready(track: int) -> bool:
        head = heads[track]
        if head is None:
            return False
        step, env = head
        return not isinstance(step, Wait) or counters[step.counter] >= value(step.at_least, env)

    while True:
        able = filter(ready, range(len(heads)))
        if (track := next(able, -1)) < 0:
            break
        track = choose([track, *able]) if choose else track
        head = heads[track]
        assert head is not None
        heads[track] = next(cursors[track], None)
        if isinstance(head[0], Signal):
            counters[head[0].counter] += 1
        yield Event(track, *head)
    if stuck := [
        f"{plan.tracks[track].name} at {Event(track, *head)}"
        for track, head in enumerate(heads)
        if head is not None
    ]:
        raise PlanError(f"deadlock: {'; '.join(stuck)}")


def repeated(steps: Iterable[Step], times: int = 1) -> Iterator[tuple[Step, int]]:
    """Yield every step but loops, once, and how often loops run it."""
    for step in steps:
        if isinstance(step, Loop):
            yield from repeated(step.body, times * step.count)
        else:
            yield step, times
