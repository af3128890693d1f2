"""Random schedules of a graph, before buffers have addresses and steps tracks: where each tensor
is, and in which steps it gets there and is computed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np

from pipeline.graph.access import Operand, clipped
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
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


# --- a whole graph

NEAR = ("sram", "sram", "sram", "other")
"""Memories that kernels use, by how often."""


def scheduled(draft: Draft) -> None:
    """All buffers, and all steps of all frames."""
    graph, rng = draft.graph, draft.rng
    draft.streams = draft.chance(0.25)
    _homes(draft)
    partial = [op for op in graph.operators if op.combine != "whole" and draft.chance(0.35)]
    state = rng.bit_generator.state
    for frame in range(draft.frames):
        if draft.chance(0.5):  # every frame the same
            rng.bit_generator.state = state
        for tensor in (graph.input, *(graph.constants if frame == 0 else ())):
            _along(draft, tensor, frame)
        for op in graph.operators:
            if op in partial:
                _partial_sums(draft, op, frame)
            else:
                _whole_sums(draft, op, frame)
            _along(draft, op.output, frame)


def _homes(draft: Draft) -> None:
    """Buffers of every tensor: where it is first, and where it is moved to before it is used."""
    graph = draft.graph
    _chain(draft, graph.input, draft.pick(*NEAR, "stream", "stream", "card"))
    for name in graph.constants:
        role = "constant" if draft.chance(0.8) else "activation"
        _chain(draft, name, draft.pick("flash", "flash", "flash", "sram", "card"), role)
    for op in graph.operators:
        _chain(draft, op.output, draft.pick(*NEAR))
    draft.resident += [draft.chains[name][0] for name in (graph.input, *graph.constants)]


def _chain(draft: Draft, tensor: str, first: str, role: str = "activation") -> None:
    """Buffers from ``first`` on; of the input's first and the output's last, one each frame."""
    memories = [first]
    if draft.chance({"card": 1, "stream": 0.85}.get(first, 0.1)):
        memories.append(draft.pick(*NEAR))
    elif draft.chance(0.08):  # out to a card and back
        memories += ["card"] if tensor == draft.graph.output else ["card", draft.pick(*NEAR)]
    names = [f"{n}.{tensor}" for n in range(len(memories))]
    fixed = {draft.graph.input: names[0], draft.graph.output: names[-1]}
    for n, (name, memory) in enumerate(zip(names, memories, strict=True)):
        copies = draft.pick(1, draft.frames)
        if fixed.get(tensor) == name:
            copies = draft.frames
        elif not n and tensor in draft.graph.constants:
            copies = 1
        draft.buffer(name, tensor, memory, copies=copies, role="activation" if n else role)
    draft.chains[tensor] = names


def _along(draft: Draft, tensor: str, frame: int) -> None:
    """Moves from where a tensor is first to where it is used, tile by tile."""
    copy = 0 if tensor in draft.graph.constants else frame
    for far, near in pairwise(draft.chains[tensor]):
        boxes, before = tiles(draft, draft.graph.tensors[tensor].shape), frozenset[int]()
        if draft.buffers[far].memory == "stream":  # rows, in order
            shape = draft.graph.tensors[tensor].shape
            size = 1 + draft.below(shape[0])
            rest = tuple((0, n) for n in shape[1:])
            boxes = [((n, min(n + size, shape[0])), *rest) for n in range(0, shape[0], size)]
        for box in boxes:
            step = Move(piece(far, box, copy), piece(near, box, copy), frame)
            needs, makes = elements(draft, far, copy, box), elements(draft, near, copy, box)
            number = draft.add(step, needs, makes, before)
            if draft.buffers[far].memory == "stream":
                before = frozenset({number})


# --- operators: tile by tile, or in partial sums


def _whole_sums(draft: Draft, op: Operator, frame: int) -> None:
    """Ordinary computations, tile by tile."""
    shape = draft.graph.tensors[op.output].shape
    exact = draft.streams or draft.chance(0.7)
    boxes = tiles(draft, shape)
    unit, order = unit_of(draft, tuple((0, n) for n in shape))
    for box in boxes:
        if len(boxes) > 1:
            unit, order = unit_of(draft, box) if draft.chance(0.2) else (unit, ())
        _compute(draft, op, box, frame, exact, unit, order)


def _partial_sums(draft: Draft, op: Operator, frame: int) -> None:
    """Cleared, added to in parts, perhaps moved, and finished; tile by tile."""
    out, acc, moved = draft.chains[op.output][0], f"{op.name}.acc", f"{op.name}.acc2"
    if acc not in draft.buffers:
        _accumulators(draft, op, acc, moved)
    for box in tiles(draft, draft.graph.tensors[op.output].shape):
        sums = elements(draft, acc, frame, box)
        clear = draft.add(Clear(op.name, piece(acc, box, frame), frame), set(), sums)
        for part in _parts(draft, op, box):
            ins, needs = _inputs(draft, part, frame, exact=True)
            unit, order = unit_of(draft, box) if draft.chance(0.3) else ((), ())
            add = Compute(op.name, piece(acc, box, frame), ins, unit, order, True, frame=frame)
            draft.add(add, needs, sums, frozenset({clear}))
        last = acc
        if moved in draft.buffers:
            last = moved
            move = Move(piece(acc, box, frame), piece(last, box, frame), frame)
            draft.add(move, sums, elements(draft, last, frame, box))
        held = _regions(draft, op.completion(draft.graph.tensors), box)
        ins, needs = _inputs(draft, held, frame, draft.chance(0.7))
        unit, _ = unit_of(draft, box)
        end = Finish(op.name, piece(last, box, frame), piece(out, box, frame), ins, unit, frame)
        made = elements(draft, out, frame, box)
        draft.add(end, needs | elements(draft, last, frame, box), made)


def _compute(  # type: ignore[no-untyped-def]
    draft: Draft, op: Operator, box: Box, frame: int, exact: bool, unit, order
) -> None:
    tensors, out = draft.graph.tensors, draft.chains[op.output][0]
    held = _regions(draft, [*_operands(draft, op), *op.completion(tensors)], box)
    ins, needs = _inputs(draft, held, frame, exact)
    step = Compute(op.name, piece(out, box, frame), ins, unit, order, frame=frame)
    draft.add(step, needs, elements(draft, out, frame, box))


def _operands(draft: Draft, op: Operator) -> list[Operand]:
    return [operand for term in op.terms(draft.graph.tensors) for operand in term.operands]


def _regions(draft: Draft, operands: Iterable[Operand], box: Box) -> dict[str, Box]:
    """What outputs ``box`` read of each tensor, as one box."""
    found: dict[str, Box] = {}
    for operand in operands:
        more = clipped(operand.region(box), draft.graph.tensors[operand.tensor].shape)
        before = found.get(operand.tensor, more)
        found[operand.tensor] = tuple(
            (min(a, c), max(b, d)) for (a, b), (c, d) in zip(more, before, strict=True)
        )
    return found


def _inputs(
    draft: Draft, held: dict[str, Box], frame: int, exact: bool
) -> tuple[tuple[Slice, ...], set[Need]]:
    """Slices that hold ``held``, and what they need; whole tensors unless ``exact``."""
    slices, needs = [], set()
    for tensor, box in held.items():
        name = draft.chains[tensor][-1]
        copy = 0 if tensor in draft.graph.constants else frame
        needs |= elements(draft, name, copy, box)
        given = box if exact else draft.graph.tensors[tensor].box
        slices.append(piece(name, given, copy))
    return tuple(slices), needs


def _parts(draft: Draft, op: Operator, box: Box) -> list[dict[str, Box]]:
    """What each contribution reads: a part along an axis of an operand, or one of two terms."""
    operands = _operands(draft, op)
    read = _regions(draft, operands, box)
    if len(op.terms(draft.graph.tensors)) > 1 and len(read) > 1 and draft.chance(0.3):
        parts = [{tensor: held} for tensor, held in read.items()]
    else:
        cut = draft.graph.tensors[draft.pick(*operands).tensor]
        axis, parts = draft.below(len(cut.shape)), []
        size = 1 + draft.below(cut.shape[axis])
        for low in range(0, cut.shape[axis], size):
            start, stop = read[cut.name][axis]
            start, stop = max(start, low), max(start, low, min(stop, low + size))
            if start < stop or draft.chance(0.1):
                lines = list(read[cut.name])
                lines[axis] = (start, stop)
                parts.append({**read, cut.name: tuple(lines)})
    return parts


def _accumulators(draft: Draft, op: Operator, name: str, moved: str) -> None:
    """Of the least width that holds every sum, or more; or rounded. Perhaps in two places."""
    low, high = op.partial_sums(draft.graph.tensors, draft.graph.constants)
    enough = [b for b in (4, 8, 16, 32) if -(1 << (b - 1)) <= low <= high < 1 << (b - 1)]
    bits, step = draft.pick(enough[0], enough[0], *enough), 1
    if op.combine == "add" and draft.chance(0.3):
        bits, step = draft.pick(4, 8, 16), 2 + draft.below(4000)
    kind = {"role": "accumulator", "copies": draft.pick(1, draft.frames)}
    draft.buffer(name, op.output, bits=bits, step=step, **kind)
    if draft.chance(0.15):
        draft.buffer(moved, op.output, bits=bits, step=step, **kind)
