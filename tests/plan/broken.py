"""Plans of the fixtures with one mistake each, and what has to be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Compute,
    Finish,
    Loop,
    Plan,
    Signal,
    Step,
    Track,
    Wait,
    packed,
)


def edit(steps: tuple[Step, ...], change: Callable[[Step], Step | None]) -> tuple[Step, ...]:
    """Rebuild steps with ``change`` applied to every leaf; None drops it."""
    result: list[Step] = []
    for step in steps:
        if isinstance(step, Loop):
            result.append(replace(step, body=edit(step.body, change)))
        elif (changed := change(step)) is not None:
            result.append(changed)
    return tuple(result)


def edited(plan: Plan, change: Callable[[Step], Step | None]) -> Plan:
    return replace(plan, tracks=tuple(replace(t, steps=edit(t.steps, change)) for t in plan.tracks))


def rebuffered(plan: Plan, name: str, **change: Any) -> Plan:
    buffers = tuple(replace(b, **change) if b.name == name else b for b in plan.buffers)
    return replace(plan, buffers=buffers)


def _without(kind: type, name: str = "") -> Callable[[Plan], Plan]:
    def dropped(step: Step) -> Step | None:
        return None if isinstance(step, kind) and getattr(step, "counter", "") == name else step

    return lambda plan: edited(plan, dropped)


def _changed(kind: type, **change: Any) -> Callable[[Plan], Plan]:
    return lambda plan: edited(
        plan, lambda step: replace(step, **change) if isinstance(step, kind) else step
    )


def _twice(plan: Plan) -> Plan:
    """The last step of each loop again."""
    (track,) = plan.tracks
    steps = tuple(
        replace(step, body=(*step.body, step.body[-1])) if isinstance(step, Loop) else step
        for step in track.steps
    )
    return replace(plan, tracks=(Track("cpu", steps),))


def _shorter(plan: Plan) -> Plan:
    (track,) = plan.tracks
    steps = tuple(replace(s, count=2) if isinstance(s, Loop) else s for s in track.steps)
    return replace(plan, tracks=(Track("cpu", steps),))


def _streamed_twice(plan: Plan) -> Plan:
    clear, first, *rest = plan.tracks[0].steps
    return replace(plan, tracks=(Track("cpu", (clear, first, first, *rest)),))


def _wide(plan: Plan) -> Plan:
    memories = (replace(m, granule_bytes=128) if m.name == "sram" else m for m in plan.memories)
    return replace(plan, memories=tuple(memories))


def _cramped(plan: Plan) -> Plan:
    memories = (replace(m, bytes=30) if m.name == "sram" else m for m in plan.memories)
    return replace(plan, memories=tuple(memories))


def _scratch_at(base: int) -> Callable[[Plan], Plan]:
    scratch = Buffer("scratch", "", "sram", (8,), 8, packed((8,), 8, base), "scratch")

    def with_scratch(plan: Plan) -> Plan:
        plan = replace(plan, buffers=(*plan.buffers, scratch))
        return _changed(Compute, scratch=("scratch",))(plan)

    return with_scratch


def _with(name: str, **change: Any) -> Callable[[Plan], Plan]:
    return lambda plan: rebuffered(plan, name, **change)


Change = Callable[[Plan], Plan]
BROKEN: tuple[tuple[str, Change, str, str], ...] = (
    (
        "herringbone",
        _changed(Compute, order=()),
        "y needs .*'x'",
        "overwrites element .* before its",
    ),
    (
        "herringbone",
        _changed(Compute, unit=(2, 1, 3)),
        "does not name every unit once",
        "names 16 of 8 units",
    ),
    (
        "herringbone",
        _scratch_at(4),
        "scratch in cells that it reads or writes",
        "scratch scratch overlaps",
    ),
    ("herringbone", _cramped, "leaves sram", "of sram, which has 60"),
    ("double_buffer", _without(Wait, "free"), "race|needs", "race|finds"),
    ("double_buffer", _without(Wait, "arrived"), "race|needs", "race|finds"),
    ("double_buffer", _without(Signal, "free"), "deadlock", "deadlock: .*io"),
    # Two tiles share a 512-byte block: writes by two engines conflict although no byte does.
    ("double_buffer", _wide, "race", "race in sram"),
    ("channel_partial", _twice, "added to y twice", "adds a contribution to y twice"),
    ("channel_partial", _shorter, "not complete", "incomplete"),
    ("channel_partial", _without(Finish), "y is not there at the end", "the plan.s end"),
    ("channel_partial", _with("acc", bits=16), "do not fit 16 bits", "do not fit acc's 16 bits"),
    ("channel_partial", _with("acc", step=0), "cannot have steps of 0", "is not chosen"),
    ("row_ring", _with("ring", map=Affine(0, (24, 4, 2), (2, 0, 0))), "h needs .*'image'", "finds"),
    ("row_ring", _streamed_twice, "twice or out of order", "out of order or twice"),
)
"""Fixtures with one mistake: what the reference says of it, and the verifier."""
