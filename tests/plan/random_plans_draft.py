"""A random plan in the making: its buffers and steps, before they have addresses and tracks."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Box
from pipeline.plan.vocabulary import Buffer, Clear, Compute, Finish, Move, Slice, packed

Place = tuple[int, ...]
Need = tuple[str, int, Place]
"""A buffer, which of its copies, and an element."""
Action = Compute | Clear | Finish | Move


@dataclass
class Task:
    """A step, what it reads and writes, and the numbers of tasks that have to come first."""

    step: Action
    needs: set[Need]
    makes: set[Need]
    after: set[int] = field(default_factory=set)


@dataclass
class Draft:
    """
    Attributes:
        chains: the buffers that each tensor is moved through; where it is made, and where read.
        streams: every operator row by row, as soon as it can.
    """

    rng: np.random.Generator
    graph: Graph
    frames: int = 1
    buffers: dict[str, Buffer] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    chains: dict[str, list[str]] = field(default_factory=dict)
    resident: list[str] = field(default_factory=list)
    streams: bool = False

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def below(self, stop: int) -> int:
        return int(self.rng.integers(stop))

    def pick(self, *items: Any) -> Any:
        return items[self.below(len(items))]

    def shuffled(self, items: list[Any]) -> list[Any]:
        return [items[n] for n in self.rng.permutation(len(items))]

    def buffer(self, name: str, tensor: str, memory: str = "sram", **options: Any) -> None:
        """A new buffer of a tensor, whose place comes later."""
        kind = self.graph.tensors[tensor]
        options = {"bits": kind.dtype.bits, "copy_stride": 2, **options}
        place = packed(kind.shape, options["bits"])
        self.buffers[name] = Buffer(name, tensor, memory, kind.shape, map=place, **options)

    def add(
        self, step: Action, needs: set[Need], makes: set[Need], after: frozenset[int] = frozenset()
    ) -> int:
        self.tasks.append(Task(step, needs, makes, set(after)))
        return len(self.tasks) - 1


def elements(draft: Draft, name: str, copy: int, box: Box) -> set[Need]:
    number = copy % draft.buffers[name].copies
    return {(name, number, place) for place in product(*(range(a, b) for a, b in box))}


def piece(name: str, box: Box, copy: int = 0) -> Slice:
    return Slice(name, tuple(a for a, _ in box), tuple(b - a for a, b in box), copy)


def tiles(draft: Draft, shape: Place) -> list[Box]:
    """``shape`` cut along an axis or two, in some order; perhaps a part twice, or nothing."""
    boxes: list[Box] = [tuple((0, n) for n in shape)]
    if draft.streams:
        size, rest = draft.pick(1, 1, 2), boxes[0][1:]
        return [((n, min(n + size, shape[0])), *rest) for n in range(0, shape[0], size)]
    for axis in draft.rng.permutation(len(shape))[: draft.below(3)]:
        size = 1 + draft.below(shape[axis])
        boxes = [
            (*box[:axis], (low, min(low + size, shape[axis])), *box[axis + 1 :])
            for box in boxes
            for low in range(0, shape[axis], size)
        ]
    if len(boxes) > 12:
        return tiles(draft, shape)
    if draft.chance(0.2):
        boxes = draft.shuffled(boxes)
    elif draft.chance(0.1):
        boxes.reverse()
    if draft.chance(0.1):
        boxes.append(draft.pick(*boxes))
    if draft.chance(0.04):
        low = draft.below(shape[0] + 2)
        boxes.append(((low, low + draft.below(2) * (low >= shape[0])), *boxes[0][1:]))
    return boxes


def unit_of(draft: Draft, box: Box) -> tuple[Place, tuple[Place, ...]]:
    """A random unit and order of units."""
    extents = [max(1, b - a) for a, b in box]
    kind = draft.pick("one", "one", "rows", "any", "whole")
    unit: Place = ()
    if kind == "rows":
        unit = (1,) * (len(extents) - 1) + (extents[-1],)
    elif kind == "any":
        unit = tuple(1 + draft.below(n) for n in extents)
    elif kind == "whole":
        unit = tuple(extents)
    if not draft.chance(0.3):
        return unit, ()
    steps = unit or (1,) * len(extents)
    grid = list(product(*(range(0, n, s) for n, s in zip(extents, steps, strict=True))))
    order = draft.shuffled(grid) if draft.chance(0.5) else grid[::-1]
    return unit, tuple(order)
