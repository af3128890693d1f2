"""Random small plans over random small graphs: sound, most of them. First there are steps, between
buffers that lie apart; then an order of them, places that are right for it, and tracks."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from types import SimpleNamespace
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.state import State
from pipeline.graph.tensor import Box
from pipeline.hardware import Memory
from pipeline.plan import vocabulary as v
from pipeline.schedules.bounds import Needs, ranges
from tests.passes.growers import random_network
from tests.plan.random_places import Draft, Place, placed
from tests.plan.reference import Footprint, conflict, footprint
from tests.plan.reference_places import Wrong, places, window, within
from tests.plan.reference_steps import Action, Deeds
from tests.several import recalling
from tests.strategies.chains import drawn

KINDS = {"sram": "ram", "other": "ram", "card": "block", "stream": "stream", "flash": "rom"}
NEAR = ("sram", "sram", "sram", "other")
"""Memories that kernels use, by how often."""
MOST_OPERATORS, MOST_ELEMENTS = 3, 72
"""Operators of a graph, and elements of any tensor, at most."""
MOST_STEPS = {2: 14, 3: 10}
"""By the number of tracks: their interleavings are to be enumerated."""


def random_plan(seed: int) -> tuple[v.Plan, Graph]:
    rng = np.random.default_rng(seed)
    while True:
        try:
            return _made(rng)
        except v.PlanError:  # scratch where there is no room, or a card without a way
            continue


def small_graph(rng: np.random.Generator) -> Graph:
    while True:
        net = drawn(rng) if rng.random() < 0.5 else random_network(int(rng.integers(1 << 32)), 2)
        sizes = [tensor.size for tensor in net.tensors.values()]
        if max(sizes) <= MOST_ELEMENTS and len(net.operators) <= MOST_OPERATORS:
            graph = net.graph()
            if not all(_sees(op, graph) for op in graph.operators):
                continue
            return recalling(graph, rng) if rng.random() < 0.25 else graph


def _sees(op: Operator, graph: Graph) -> bool:
    """Check that not all windows of an operand lie in the padding."""
    every = [operand for term in op.terms(graph.tensors) for operand in term.operands]
    return all(
        any(within(place, graph.tensors[operand.tensor].box)
            for made in places(graph.tensors[op.output].box) for place in window(operand, made))
        for operand in every
    )  # fmt: skip


def _made(rng: np.random.Generator) -> tuple[v.Plan, Graph]:
    graph = small_graph(rng)
    frames = 1 if graph.states else int(rng.choice([1, 1, 1, 1, 1, 1, 1, 1, 2, 3]))
    draft = Draft(rng, graph, frames, streams=rng.random() < 0.25)
    row, found = in_a_row(draft, scheduled(draft))
    row = placed(draft, row, found)
    known, buffers = memories(draft), tuple(draft.buffers.values())
    notes = ((v.KEPT, draft.chance(0.9)),) if draft.chance(0.1) else ()
    tracks = dealt(draft, row, known)
    ends = draft.resident, (draft.output,), notes, frames
    kept = tuple(draft.kept[of.made] for of in graph.states)
    return v.Plan("random", "random", known, buffers, tracks, *ends, states=kept), graph


def memories(draft: Draft) -> tuple[Memory, ...]:
    """Each just large enough, or larger."""
    found = []
    for name, kind in KINDS.items():
        tops = [b.extent[1] for b in draft.buffers.values() if b.memory == name]
        size = max(1, -(-max(tops, default=0) // 2)) + draft.pick(0, 0, 3)
        coarse = draft.chance({"block": 0.5, "ram": 0.2}.get(kind, 0))
        found.append(Memory(name, size, kind, draft.pick(2, 4, 8) if coarse else 1))  # type: ignore[arg-type]
    return tuple(found)


# --- what is done to boxes of tensors


def piece(name: str, box: Box, copy: int = 0) -> v.Slice:
    return v.Slice(name, tuple(a for a, _ in box), tuple(b - a for a, b in box), copy)


def tiles(draft: Draft, shape: Place) -> list[Box]:
    """``shape`` cut along an axis or two, in some order; perhaps a part twice, or nothing."""
    whole: Box = tuple((0, n) for n in shape)
    boxes, axes = [whole], draft.rng.permutation(len(shape))[: draft.below(3)]
    for axis in [0] if draft.streams else axes:
        size = draft.pick(1, 1, 2) if draft.streams else 1 + draft.below(shape[axis])
        boxes = [
            (*box[:axis], (low, min(low + size, shape[axis])), *box[axis + 1 :])
            for box in boxes
            for low in range(0, shape[axis], size)
        ]
    if len(boxes) > 12:
        boxes = [whole]
    if not draft.streams:
        boxes = draft.shuffled(boxes) if draft.chance(0.2) else boxes[:: draft.pick(*[1] * 9, -1)]
        boxes += [draft.pick(*boxes)] * draft.chance(0.1)
        low = draft.below(shape[0] + 2)
        nothing = ((low, low + draft.below(2) * (low >= shape[0])), *whole[1:])
        boxes += [nothing] * draft.chance(0.04)
    return boxes


def unit_of(draft: Draft, box: Box) -> tuple[Place, tuple[Place, ...]]:
    """A random unit and order of units."""
    extents = [max(1, b - a) for a, b in box]
    rows, any_ = (*[1] * (len(box) - 1), extents[-1]), tuple(1 + draft.below(n) for n in extents)
    unit = draft.pick((), (), rows, any_, tuple(extents))
    if not draft.chance(0.3):
        return unit, ()
    steps = unit or (1,) * len(extents)
    grid = list(product(*(range(0, n, s) for n, s in zip(extents, steps, strict=True))))
    return unit, tuple(draft.shuffled(grid) if draft.chance(0.5) else grid[::-1])


def homes(draft: Draft) -> None:
    """Buffers of every tensor, where it is first and where moved to; copies for each frame."""
    graph = draft.graph
    for tensor in graph.tensors:
        constant, near = tensor in graph.constants, draft.pick(*NEAR)
        first = near
        if tensor == graph.input:
            first = draft.pick(*NEAR, "stream", "stream", "card")
        elif constant:
            first = draft.pick("flash", "flash", "flash", "sram", "card")
        chain = [first]
        if draft.chance({"card": 1, "stream": 0.85}.get(first, 0.1)):
            chain.append(near)
        elif draft.chance(0.08):  # out to a card and back
            chain += ["card"] if tensor == graph.output else ["card", near]
        names = [f"{n}.{tensor}" for n in range(len(chain))]
        for n, (name, memory) in enumerate(zip(names, chain, strict=True)):
            copies = draft.pick(1, draft.frames)
            if (tensor, name) in ((graph.input, names[0]), (graph.output, names[-1])):
                copies = draft.frames
            elif constant and not n:
                copies = 1
            role = "constant" if constant and not n and draft.chance(0.8) else "activation"
            draft.buffer(name, tensor, memory, copies=copies, role=role)
        draft.chains[tensor] = names
    for of in graph.states:
        _kept(draft, of)


def _kept(draft: Draft, of: State) -> None:
    """The place that a state is made for: that of what is read. Perhaps it is made there."""
    ops = draft.graph.operators
    read, name = draft.buffers[draft.chains[of.read][0]], f"kept.{of.made}"
    draft.buffers[name] = replace(read, name=name, tensor=of.made, role="activation")
    draft.kept[of.made] = name
    makes = next(n for n, op in enumerate(ops) if op.output == of.made)
    late = all(of.read not in op.inputs for op in ops[makes:])
    if draft.chains[of.made] == [f"0.{of.made}"] and draft.chance(0.7 * late):
        draft.chains[of.made] = [name]
        del draft.buffers[f"0.{of.made}"]


def scheduled(draft: Draft) -> list[tuple[int, Action]]:
    """All steps of all frames, and how far along the network each is."""
    graph, found = draft.graph, list[tuple[int, Action]]()
    homes(draft)
    ops = {op: draft.chance(0.35 * (op.combine != "whole")) for op in graph.operators}
    for frame in range(draft.frames):
        fixed = () if frame else graph.constants
        stages = [along(draft, name, frame) for name in (*graph.starts, *fixed)]
        for op, in_parts in ops.items():
            make = partial_sums if in_parts else whole_sums
            stages += [make(draft, op, frame), along(draft, op.output, frame)]
        for made, name in draft.kept.items():
            if draft.chains[made] != [name]:
                stages.append(moved(draft, draft.chains[made][-1], name, frame))
        found += [(n, step) for n, stage in enumerate(stages) for step in stage]
    return found


def along(draft: Draft, tensor: str, frame: int) -> Iterator[Action]:
    """Moves from where a tensor is first to where it is used, tile by tile."""
    for far, near in pairwise(draft.chains[tensor]):
        yield from moved(draft, far, near, frame)


def moved(draft: Draft, far: str, near: str, frame: int) -> Iterator[Action]:
    buffer = draft.buffers[far]
    copy, shape = draft.copy(buffer.tensor, frame), buffer.shape
    boxes = tiles(draft, shape)
    if buffer.memory == "stream":  # rows, in order
        size, rest = 1 + draft.below(shape[0]), tuple((0, n) for n in shape[1:])
        boxes = [((n, min(n + size, shape[0])), *rest) for n in range(0, shape[0], size)]
    for box in boxes:
        yield v.Move(piece(far, box, copy), piece(near, box, copy), frame)


def whole_sums(draft: Draft, op: Operator, frame: int) -> Iterator[Action]:
    """Ordinary computations, tile by tile."""
    tensor, exact = draft.graph.tensors[op.output], draft.streams or draft.chance(0.7)
    boxes, (unit, order) = tiles(draft, tensor.shape), unit_of(draft, tensor.box)
    for box in boxes:
        if len(boxes) > 1:
            unit, order = unit_of(draft, box) if draft.chance(0.2) else (unit, ())
        out = piece(draft.chains[op.output][0], box, frame)
        ins = slices(draft, reads(draft, op, box), frame, exact)
        yield v.Compute(op.name, out, ins, unit, order, frame=frame)


def partial_sums(draft: Draft, op: Operator, frame: int) -> Iterator[Action]:
    """Cleared, added to in parts, perhaps moved, and finished; tile by tile."""
    tensors, acc, moved = draft.graph.tensors, f"{op.name}.acc", f"{op.name}.acc2"
    if not frame:
        accumulators(draft, op, acc, moved)
    ends = {operand.tensor for operand in op.completion(tensors)}
    for box in tiles(draft, tensors[op.output].shape):
        sums = last = piece(acc, box, frame)
        yield v.Clear(op.name, sums, frame)
        for part in draft.shuffled(parts_of(draft, op, box)):
            unit, order = unit_of(draft, box) if draft.chance(0.3) else ((), ())
            ins = slices(draft, part, frame)
            yield v.Compute(op.name, sums, ins, unit, order, True, frame=frame)
        if moved in draft.buffers:
            last = piece(moved, box, frame)
            yield v.Move(sums, last, frame)
        held = {name: each for name, each in reads(draft, op, box).items() if name in ends}
        ins = slices(draft, held, frame, draft.chance(0.7))
        out = piece(draft.chains[op.output][0], box, frame)
        yield v.Finish(op.name, last, out, ins, unit_of(draft, box)[0], frame)


def reads(draft: Draft, op: Operator, box: Box, completed: bool = True) -> dict[str, Box]:
    found = Needs(op, draft.graph.tensors)(ranges(box))
    ends = {each.tensor for each in op.completion(draft.graph.tensors) if not completed}
    return {n: tuple(each.ends for each in some) for n, some in found.items() if n not in ends}


def slices(
    draft: Draft, held: dict[str, Box], frame: int, exact: bool = True
) -> tuple[v.Slice, ...]:
    """Slice what holds ``held``; whole tensors unless ``exact``."""
    chains, tensors = draft.chains, draft.graph.tensors
    return tuple(
        piece(chains[name][-1], box if exact else tensors[name].box, draft.copy(name, frame))
        for name, box in held.items()
    )


def parts_of(draft: Draft, op: Operator, box: Box) -> list[dict[str, Box]]:
    """List what each contribution reads: a part along an operand's axis, or one of two terms."""
    read = reads(draft, op, box, completed=False)
    if len(op.terms(draft.graph.tensors)) > 1 and draft.chance(0.3):
        return [{tensor: held} for tensor, held in read.items()]
    name, found = draft.pick(*read), []
    axis = draft.below(len(read[name]))
    begin, end = read[name][axis]
    extent = draft.graph.tensors[name].shape[axis]
    size = 1 + draft.below(extent)
    for low in range(0, extent, size):
        start, stop = max(begin, low), max(begin, low, min(end, low + size))
        if start < stop or draft.chance(0.1):
            lines = (*read[name][:axis], (start, stop), *read[name][axis + 1 :])
            found.append({**read, name: lines})
    return found


def accumulators(draft: Draft, op: Operator, name: str, moved: str) -> None:
    """Add accumulators as wide as every sum needs, or wider; or rounded. Perhaps two places."""
    low, high = op.partial_sums(draft.graph.tensors, draft.graph.constants)
    enough = [b for b in (4, 8, 16, 32) if -(1 << (b - 1)) <= low <= high < 1 << (b - 1)]
    bits, step = draft.pick(enough[0], enough[0], *enough), 1
    if op.combine == "add" and draft.chance(0.3):
        bits, step = draft.pick(4, 8, 16), 2 + draft.below(4000)
    copies = draft.pick(1, draft.frames)
    for each in [name, moved][: 1 + draft.chance(0.15)]:
        draft.buffer(each, op.output, "sram", bits, step=step, role="accumulator", copies=copies)


# --- orders and tracks


def feet(draft: Draft, steps: list[Action], granules: dict[str, int]) -> list[Footprint]:
    """List what each step touches."""
    known = [Memory(name, 1 << 20, kind) for name, kind in KINDS.items()]  # type: ignore[arg-type]
    plan: Any = SimpleNamespace(buffers=draft.buffers.values(), memories=known, frames=draft.frames)
    deeds, found = Deeds(plan, draft.graph), list[Footprint]()
    for step in steps:
        try:
            found.append(footprint(deeds.of(step, {}), granules))
        except Wrong:  # it will be refused anyway
            found.append({})
    return found


def in_a_row(
    draft: Draft, stages: list[tuple[int, Action]]
) -> tuple[list[Action], list[Footprint]]:
    """The steps in an order in which none overtakes another that it meets, and what they touch."""
    found = feet(draft, [step for _, step in stages], dict.fromkeys(KINDS, 1))
    before = [{m for m in range(n) if conflict(found[m], foot)} for n, foot in enumerate(found)]
    style = "depth" if draft.streams else draft.pick("as made", "depth", "depth", "random")
    done, left = list[int](), list(range(len(stages)))
    while left:
        ready = [n for n in left if before[n] <= set(done)]
        chosen = draft.pick(*ready) if style == "random" else ready[0]
        if style == "depth":  # as far along as possible, in order there
            chosen = max(ready, key=lambda n: (stages[n][0], -n))
        left.remove(chosen)
        done.append(chosen)
    return [stages[n][1] for n in done], [found[n] for n in done]


def dealt(draft: Draft, row: list[Action], known: tuple[Memory, ...]) -> tuple[v.Track, ...]:
    """The steps on one to three tracks, with the waits that their cells ask for."""
    count = draft.pick(1, 2, 2, 2, 3, 3)
    if not 2 <= len(row) <= MOST_STEPS.get(count, 0):
        count = 1
    apart = draft.chance(0.5)  # moves on a track of their own
    mine = [int(isinstance(step, v.Move)) if apart else draft.below(count) for step in row]
    if count == 1:
        return (v.Track("cpu", tuple(row)),)
    found = feet(draft, row, {memory.name: 2 * memory.granule_bytes for memory in known})
    late = [
        {mine[m]: m for m in range(n) if mine[m] != mine[n] and conflict(found[m], foot)}
        for n, foot in enumerate(found)
    ]
    needed = {latest for each in late for latest in each.values()}
    tracks: list[list[v.Step]] = [[] for _ in range(count)]
    for n, step in enumerate(row):
        for other, latest in late[n].items():
            level = sum(m in needed and mine[m] == other for m in range(latest + 1))
            tracks[mine[n]].append(v.Wait(f"t{other}", level))
        tracks[mine[n]] += [step, v.Signal(f"t{mine[n]}")][: 1 + (n in needed)]
    return tuple(
        v.Track(name, tuple(steps))
        for name, steps in zip(("cpu", "io", "dma"), tracks, strict=False)
    )
