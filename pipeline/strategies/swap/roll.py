"""A long list of steps as loops: stretches that repeat with positions that advance evenly.

Steps are compared without their positions (the shape); the positions are a vector. ``p`` steps that
repeat at least three times with constant differences of their vectors become one loop, which is a
step of its own from then on: so loops nest. A vector is compared by a linear hash, so that a second
difference of hashes is 0 where that of the vectors is.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from pipeline.plan.vocabulary import (
    Clear,
    Compute,
    Finish,
    Index,
    Lin,
    Loop,
    Move,
    Slice,
    Step,
    Wait,
)

LONGEST = 256
"""The most steps (or loops) in the body of a loop."""


@dataclass(frozen=True)
class _Node:
    """A step, or a loop of nodes whose vectors advance by ``slopes`` a turn."""

    step: Step | None
    body: tuple[_Node, ...]
    count: int
    slopes: tuple[int, ...]
    vector: tuple[int, ...]


class _Roll:
    """The nodes so far, and of each the number of its shape and the hash of its vector."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.numbers: dict[Hashable, int] = {}
        self.factors = np.random.default_rng(0).integers(1, 1 << 62, 64).astype(np.uint64)
        self.nodes = list[_Node]()
        shapes = []
        for step in steps:
            vector = tuple(_positions(step))
            self.nodes.append(_Node(step, (), 1, (), vector))
            shapes.append(self.number(_shape(step)))
        self.shapes = np.array(shapes, dtype=np.int64)
        self.hashes = np.array([self.hash(n.vector) for n in self.nodes], dtype=np.uint64)

    def number(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def hash(self, vector: tuple[int, ...]) -> np.uint64:
        if len(vector) > len(self.factors):
            more = np.random.default_rng(len(vector)).integers(1, 1 << 62, len(vector))
            self.factors = np.concatenate([self.factors, more.astype(np.uint64)])
        each = np.array(vector, dtype=np.int64).astype(np.uint64)
        return np.uint64((each * self.factors[: len(vector)]).sum())

    def collapse(self, period: int) -> bool:
        """Make loops of what repeats after ``period`` nodes; False if nothing does."""
        shape, step = self.shapes, self.hashes[period:] - self.hashes[:-period]
        same = shape[period:] == shape[:-period]
        even = same[:-period] & same[period:] & (step[:-period] == step[period:])
        edges = np.flatnonzero(np.diff(np.concatenate([[False], even, [False]]).astype(np.int8)))
        runs, done = list[tuple[int, int]](), 0
        for start, stop in edges.reshape(-1, 2).tolist():
            start = max(start, done)
            if stop - start >= period:
                count = (stop - start) // period + 2
                done = start + count * period
                runs.append((start, count))
        if runs:
            self.replace(period, runs)
        return bool(runs)

    def replace(self, period: int, runs: Sequence[tuple[int, int]]) -> None:
        """A loop for each run: (start, turns)."""
        nodes, shapes, hashes, done = list[_Node](), [], [], 0
        for start, turns in runs:
            node, number = self.loop(start, period, turns)
            nodes += [*self.nodes[done:start], node]
            shapes += [self.shapes[done:start], np.array([number])]
            hashes += [self.hashes[done:start], np.array([self.hash(node.vector)])]
            done = start + turns * period
        self.nodes = nodes + self.nodes[done:]
        self.shapes = np.concatenate([*shapes, self.shapes[done:]])
        self.hashes = np.concatenate([*hashes, self.hashes[done:]])

    def loop(self, start: int, period: int, turns: int) -> tuple[_Node, int]:
        body, second = (self.nodes[n : n + period] for n in (start, start + period))
        vector = tuple(n for node in body for n in node.vector)
        following = (n for node in second for n in node.vector)
        slopes = tuple(b - a for a, b in zip(vector, following, strict=True))
        inside = tuple(self.shapes[start : start + period].tolist())
        number = self.number(("loop", turns, slopes, inside))
        return _Node(None, tuple(body), turns, slopes, vector), number


def rolled(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The same steps in the same order; positions of ``steps`` are plain integers."""
    roll, period = _Roll(steps), 1
    while period <= min(LONGEST, len(roll.nodes) // 3):
        period = 1 if roll.collapse(period) else period + 1
    names = (f"i{n}" for n in count())
    return tuple(_step(node, node.vector, {}, names) for node in roll.nodes)


def _step(
    node: _Node, vector: Sequence[int], slopes: dict[str, Sequence[int]], names: Iterator[str]
) -> Step:
    """``node`` with positions ``vector`` that advance by ``slopes[variable]`` in the loops."""
    if node.step is not None:
        positions = [
            _index(const, [(name, slope[n]) for name, slope in slopes.items()])
            for n, const in enumerate(vector)
        ]
        return _placed(node.step, iter(positions))
    variable, steps, at = next(names), list[Step](), 0
    inner = {**slopes, variable: node.slopes}
    for child in node.body:
        stop = at + len(child.vector)
        parts = {name: slope[at:stop] for name, slope in inner.items()}
        steps.append(_step(child, vector[at:stop], parts, names))
        at = stop
    return Loop(variable, node.count, tuple(steps))


def _index(const: int, coefficients: list[tuple[str, int]]) -> Index:
    moving = tuple((name, slope) for name, slope in coefficients if slope)
    return Lin(const, moving) if moving else const


def _shape(step: Step) -> Hashable:
    """All but the positions."""

    def of(*pieces: Slice) -> Hashable:
        return tuple((piece.buffer, piece.size) for piece in pieces)

    match step:
        case Compute():
            what = step.op, step.unit, step.order, step.partial, step.scratch
            return Compute, *what, of(step.out, *step.ins)
        case Clear():
            return Clear, step.op, of(step.acc)
        case Finish():
            return Finish, step.op, step.unit, of(step.acc, step.out, *step.ins)
        case Move():
            return Move, of(step.src, step.dst)
        case Wait():
            return Wait, step.counter
        case _:
            return step


def _positions(step: Step) -> Iterator[Any]:
    match step:
        case Compute(out=out, ins=ins, frame=frame):
            pieces: tuple[Slice, ...] = (out, *ins)
        case Clear(acc=acc, frame=frame):
            pieces = (acc,)
        case Finish(acc=acc, out=out, ins=ins, frame=frame):
            pieces = (acc, out, *ins)
        case Move(src=src, dst=dst, frame=frame):
            pieces = (src, dst)
        case Wait(at_least=at_least):
            yield at_least
            return
        case _:
            return
    yield frame
    for piece in pieces:
        yield piece.copy
        yield from piece.lo


def _placed(step: Step, positions: Iterator[Index]) -> Step:
    """``step`` with the next of ``positions`` in the order of ``_positions``."""

    def moved(piece: Slice) -> Slice:
        copy = next(positions)
        return replace(piece, copy=copy, lo=tuple(next(positions) for _ in piece.lo))

    match step:
        case Wait():
            return replace(step, at_least=next(positions))
        case Compute() | Clear() | Finish() | Move():
            step = replace(step, frame=next(positions))
    match step:
        case Compute():
            return replace(step, out=moved(step.out), ins=tuple(map(moved, step.ins)))
        case Clear():
            return replace(step, acc=moved(step.acc))
        case Finish():
            acc, out = moved(step.acc), moved(step.out)
            return replace(step, acc=acc, out=out, ins=tuple(map(moved, step.ins)))
        case Move():
            return replace(step, src=moved(step.src), dst=moved(step.dst))
    return step
