"""A long list of steps as loops: stretches that repeat with positions that advance evenly.

Items are compared without their positions (the shape); the positions are a vector. ``p`` items that
repeat at least three times with constant differences of their vectors become one loop, which is an
item of its own from then on: so loops nest. A vector is compared by a linear hash, so that a second
difference of hashes is 0 where that of the vectors is.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

import numpy as np

from pipeline.plan.vocabulary import Index, Lin, Loop, Step

T = TypeVar("T", bound=Hashable)

Vector = tuple[int, ...]

LONGEST = 256
"""The most steps (or loops) in the body of a loop."""


@dataclass(frozen=True)
class _Node(Generic[T]):
    """An item's shape, or a loop of nodes whose vectors advance by ``slopes`` a turn."""

    shape: T | None
    body: tuple[_Node[T], ...]
    count: int
    slopes: Vector
    vector: Vector


class _Roll(Generic[T]):
    """The nodes so far, and of each the number of its shape and the hash of its vector."""

    def __init__(self, items: Sequence[tuple[T, Vector]]) -> None:
        self.numbers: dict[Hashable, int] = {}
        self.factors = np.random.default_rng(0).integers(1, 1 << 62, 64).astype(np.uint64)
        self.nodes = list[_Node[T]]()
        shapes = []
        for shape, vector in items:
            self.nodes.append(_Node(shape, (), 1, (), vector))
            shapes.append(self.number(shape))
        self.shapes = np.array(shapes, dtype=np.int64)
        self.hashes = np.array([self.hash(n.vector) for n in self.nodes], dtype=np.uint64)

    def number(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def hash(self, vector: Vector) -> np.uint64:
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
        nodes, shapes, hashes, done = list[_Node[T]](), [], [], 0
        for start, turns in runs:
            node, number = self.loop(start, period, turns)
            nodes += [*self.nodes[done:start], node]
            shapes += [self.shapes[done:start], np.array([number])]
            hashes += [self.hashes[done:start], np.array([self.hash(node.vector)])]
            done = start + turns * period
        self.nodes = nodes + self.nodes[done:]
        self.shapes = np.concatenate([*shapes, self.shapes[done:]])
        self.hashes = np.concatenate([*hashes, self.hashes[done:]])

    def loop(self, start: int, period: int, turns: int) -> tuple[_Node[T], int]:
        body, second = (self.nodes[n : n + period] for n in (start, start + period))
        vector = tuple(n for node in body for n in node.vector)
        following = (n for node in second for n in node.vector)
        slopes = tuple(b - a for a, b in zip(vector, following, strict=True))
        inside = tuple(self.shapes[start : start + period].tolist())
        number = self.number(("loop", turns, slopes, inside))
        return _Node(None, tuple(body), turns, slopes, vector), number


def rolled(
    items: Sequence[tuple[T, Vector]], step: Callable[[T, Sequence[Index]], Step]
) -> tuple[Step, ...]:
    """The steps of ``items``, each a shape and its positions, in the same order.

    Args:
        step: of a shape, at positions that may depend on loop variables.
    """
    roll, period = _Roll(items), 1
    while period <= min(LONGEST, len(roll.nodes) // 3):
        period = 1 if roll.collapse(period) else period + 1
    names = (f"i{n}" for n in count())
    return tuple(_unfolded(node, node.vector, {}, names, step) for node in roll.nodes)


def _unfolded(
    node: _Node[T],
    vector: Sequence[int],
    slopes: dict[str, Sequence[int]],
    names: Iterator[str],
    step: Callable[[T, Sequence[Index]], Step],
) -> Step:
    """``node`` at positions ``vector`` that advance by ``slopes[variable]`` in the loops."""
    if node.shape is not None:
        moving = [[(name, slope[n]) for name, slope in slopes.items()] for n in range(len(vector))]
        return step(node.shape, [_index(*each) for each in zip(vector, moving, strict=True)])
    variable, steps, at = next(names), list[Step](), 0
    inner = {**slopes, variable: node.slopes}
    for child in node.body:
        stop = at + len(child.vector)
        parts = {name: slope[at:stop] for name, slope in inner.items()}
        steps.append(_unfolded(child, vector[at:stop], parts, names, step))
        at = stop
    return Loop(variable, node.count, tuple(steps))


def _index(const: int, coefficients: list[tuple[str, int]]) -> Index:
    moving = tuple((name, slope) for name, slope in coefficients if slope)
    return Lin(const, moving) if moving else const
