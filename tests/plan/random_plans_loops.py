"""Loops in place of steps that repeat with evenly growing positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pipeline.plan.vocabulary import Lin, Loop, Slice, Step, Wait
from tests.plan.random_plans_draft import Draft

Flat = tuple[Any, list[int]]
"""What a step is but for the positions in it, and those."""


def rolled(draft: Draft, steps: list[Step], depth: int = 0) -> tuple[Step, ...]:
    """``steps``, some of them in loops, and those in loops again."""
    if depth > 1 or not draft.chance(0.6 + 0.4 * depth):
        return tuple(steps)
    flat = [_flat(step) for step in steps]
    result: list[Step] = []
    n = 0
    while n < len(steps):
        for period in draft.rng.permutation(range(1, 5 + 2 * depth)).tolist():
            times, growth = _repeats(flat[n:], period)
            if times > 1:
                first = [number for _, numbers in flat[n : n + period] for number in numbers]
                grown = iter(zip(first, growth, strict=True))
                body = _counting(tuple(steps[n : n + period]), grown, f"v{depth}")
                result.append(Loop(f"v{depth}", times, body))
                draft.features.add("nested loop" if depth else "loop")
                n += times * period
                break
        else:
            result.append(steps[n])
            n += 1
    return rolled(draft, result, depth + 1)


def _repeats(flat: list[Flat], period: int) -> tuple[int, list[int]]:
    """How often the first ``period`` steps come, and by how much each number in them grows."""

    def part(k: int) -> tuple[list[Any], list[int]]:
        chosen = flat[k * period : (k + 1) * period]
        return [form for form, _ in chosen], [n for _, numbers in chosen for n in numbers]

    form, first = part(0)
    if part(1)[0] != form:
        return 1, []
    growth = [b - a for a, b in zip(first, part(1)[1], strict=True)]
    times = 2
    while part(times) == (form, [a + times * g for a, g in zip(first, growth, strict=True)]):
        times += 1
    return times, growth


def _flat(step: Step) -> Flat:
    numbers: list[int] = []

    def visit(node: Any, position: bool) -> Any:
        if isinstance(node, Lin) or (position and isinstance(node, int)):
            numbers.append(node.const if isinstance(node, Lin) else node)
            return node.coef if isinstance(node, Lin) else ()
        if isinstance(node, tuple):
            return tuple(visit(item, position) for item in node)
        if is_dataclass(node):
            inner = (visit(getattr(node, f.name), _counts(node, f.name)) for f in fields(node))
            return (type(node), *inner)
        return node

    return visit(step, False), numbers


def _counts(node: Any, field: str) -> bool:
    """May the field hold numbers that a loop counts?"""
    if isinstance(node, Slice):
        return field in ("lo", "copy")
    return field == ("at_least" if isinstance(node, Wait) else "frame")


def _counting(node: Any, grown: Iterator[tuple[int, int]], var: str, position: bool = False) -> Any:
    """``node`` with each position growing as ``var`` does; in the order of ``_flat``."""
    if isinstance(node, Lin) or (position and isinstance(node, int)):
        const, growth = next(grown)
        coef = node.coef if isinstance(node, Lin) else ()
        if growth:
            coef = (*coef, (var, growth))
        return Lin(const, coef) if coef else const
    if isinstance(node, tuple):
        return tuple(_counting(item, grown, var, position) for item in node)
    if is_dataclass(node) and not isinstance(node, type):
        changed = {
            f.name: _counting(getattr(node, f.name), grown, var, _counts(node, f.name))
            for f in fields(node)
        }
        return replace(node, **changed)
    return node
