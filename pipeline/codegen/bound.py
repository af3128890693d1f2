"""A step for one round of the loop around it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.plan.vocabulary import Lin, Slice, Step

MOVING = ("out", "ins", "acc", "src", "dst", "frame", "at_least", "body")
"""Fields of steps that loops may move."""


def bound(step: Step, env: Mapping[str, int]) -> Step:
    """``step`` with the loop variables of ``env`` replaced by their values."""

    def at(part: Any) -> Any:
        match part:
            case int():
                return part
            case Lin(const=const, coef=coef):
                const += sum(factor * env[name] for name, factor in coef if name in env)
                left = tuple((name, factor) for name, factor in coef if name not in env)
                return Lin(const, left) if left else const
            case Slice(lo=lo, copy=copy):
                return replace(part, lo=at(lo), copy=at(copy))
            case tuple():
                return tuple(map(at, part))
        return bound(part, env)

    moving = (name for name in MOVING if hasattr(step, name))
    return replace(step, **{name: at(getattr(step, name)) for name in moving})
