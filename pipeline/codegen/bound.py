"""A step for one round of the loop around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipeline.plan.vocabulary import (
    Clear,
    Compute,
    Finish,
    Index,
    Lin,
    Loop,
    Move,
    Signal,
    Slice,
    Step,
    Wait,
)


def bound(step: Step, env: Mapping[str, int]) -> Step:
    """``step`` with the loop variables of ``env`` replaced by their values."""

    def index(of: Index) -> Index:
        if isinstance(of, int):
            return of
        const = of.const + sum(factor * env[name] for name, factor in of.coef if name in env)
        left = tuple((name, factor) for name, factor in of.coef if name not in env)
        return Lin(const, left) if left else const

    def piece(of: Slice) -> Slice:
        return replace(of, lo=tuple(map(index, of.lo)), copy=index(of.copy))

    match step:
        case Compute(out=out, ins=ins):
            read = tuple(map(piece, ins))
            return replace(step, out=piece(out), ins=read, frame=index(step.frame))
        case Clear(acc=acc):
            return replace(step, acc=piece(acc), frame=index(step.frame))
        case Finish(acc=acc, out=out, ins=ins):
            read, frame = tuple(map(piece, ins)), index(step.frame)
            return replace(step, acc=piece(acc), out=piece(out), ins=read, frame=frame)
        case Move(src=src, dst=dst):
            frame = index(step.frame)
            return replace(step, src=piece(src), dst=piece(dst), frame=frame)
        case Wait(at_least=at_least):
            return replace(step, at_least=index(at_least))
        case Loop(body=body):
            return replace(step, body=tuple(bound(inner, env) for inner in body))
        case Signal():
            return step
