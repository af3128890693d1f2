"""A long list of steps as loops: stretches that repeat with positions that advance evenly.

Items are compared without their positions (the shape); the positions are a vector. ``p`` items that
repeat at least three times with constant differences of their vectors become one loop, which is an
item of its own from then on: so loops nest. A vector is compared by a linear hash, so that a second
difference of hashes is 0 where that of the vectors is.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import reduce
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np

from pipeline.plan.vocabulary import Index, Lin, Loop, Step

Vector = tuple[int, ...]
LONGEST = 256
"""The most steps (or loops) in the body of a loop."""
FACTOR = 0x9E3779B97F4A7C15
"""Factor of the hash: 2 ** 64 over the golden ratio, odd."""


class _Node(NamedTuple):
    """An item's shape, or a loop of nodes whose vectors advance by ``slopes`` a turn; the number of
    what it is but for its vector, and the vector's hash."""

    shape: Any
    vector: Vector
    number: int
    hash: int
    body: tuple["_Node", ...] = ()
    turns: int = 1
    slopes: Vector = ()


def _hash(vector: Vector) -> int:
    return reduce(lambda found, n: (found * FACTOR + n) % (1 << 64), vector, 0)


class _Roll:
    """The nodes so far."""

    def __init__(self, items: Sequence[tuple[Hashable, Vector]]) -> None:
        self.numbers = defaultdict[Hashable, int](count().__next__)
        self.put([_Node(shape, at, self.numbers[shape], _hash(at)) for shape, at in items])

    def put(self, nodes: list[_Node]) -> None:
        self.nodes = nodes
        self.shapes = np.array([node.number for node in nodes], dtype=np.int64)
        self.hashes = np.array([node.hash for node in nodes], dtype=np.uint64)

    def collapse(self, period: int) -> bool:
        """Make loops of what repeats after ``period`` nodes; False if nothing does."""
        shape, step = self.shapes, self.hashes[period:] - self.hashes[:-period]
        same = shape[period:] == shape[:-period]
        even = same[:-period] & same[period:] & (step[:-period] == step[period:])
        edges = np.flatnonzero(np.diff(np.concatenate([[False], even, [False]]).astype(np.int8)))
        nodes, done = list[_Node](), 0
        for start, stop in edges.reshape(-1, 2).tolist():
            start = max(start, done)
            if stop - start >= period:
                turns = (stop - start) // period + 2
                nodes += [*self.nodes[done:start], self.loop(start, period, turns)]
                done = start + turns * period
        if nodes:
            self.put(nodes + self.nodes[done:])
        return bool(nodes)

    def loop(self, start: int, period: int, turns: int) -> _Node:
        body, second = (tuple(self.nodes[n : n + period]) for n in (start, start + period))
        vector = tuple(n for node in body for n in node.vector)
        following = (n for node in second for n in node.vector)
        slopes = tuple(b - a for a, b in zip(vector, following, strict=True))
        number = self.numbers["loop", turns, slopes, tuple(node.number for node in body)]
        return _Node(None, vector, number, _hash(vector), body, turns, slopes)


def rolled(
    items: Sequence[tuple[Hashable, Vector]], step: Callable[[Any, Sequence[Index]], Step]
) -> tuple[Step, ...]:
    """Return the steps of ``items``, each a shape and its positions, in the same order.

    Args:
        step: of a shape, at positions that may depend on loop variables.
    """
    roll, period = _Roll(items), 1
    while period <= min(LONGEST, len(roll.nodes) // 3):
        period = 1 if roll.collapse(period) else period + 1
    names = (f"i{n}" for n in count())
    return tuple(_unfolded(node, node.vector, names, step) for node in roll.nodes)


def _unfolded(
    node: _Node, at: Sequence[Index], names: Iterator[str],
    step: Callable[[Any, Sequence[Index]], Step],
) -> Step:  # fmt: skip
    """``node`` at positions ``at``, to which each turn of a loop adds its slopes."""
    if node.shape is not None:
        return step(node.shape, at)
    variable = next(names)
    moving = (
        each + Lin(0, ((variable, slope),)) if slope else each
        for each, slope in zip(at, node.slopes, strict=True)
    )
    parts = ((child, list(islice(moving, len(child.vector)))) for child in node.body)
    steps = [_unfolded(child, part, names, step) for child, part in parts]
    return Loop(variable, node.turns, tuple(steps))
