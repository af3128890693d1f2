"""Random schedules of a whole graph: where each tensor is, and in which steps it gets there."""

from __future__ import annotations

from itertools import pairwise

from pipeline.plan.vocabulary import Move
from tests.plan.random_plans_draft import Draft, elements, piece, tiles
from tests.plan.random_plans_sums import partial_sums, rambling, whole_sums

NEAR = ("sram", "sram", "sram", "other")
"""Memories that kernels use, by how often."""


def scheduled(draft: Draft) -> None:
    """All buffers, and all steps of all frames."""
    graph, rng = draft.graph, draft.rng
    draft.streams = draft.chance(0.25)
    _homes(draft)
    rambles = not draft.streams and draft.chance(0.12)
    partial = [op for op in graph.operators if op.combine != "whole" and draft.chance(0.35)]
    state = rng.bit_generator.state
    for frame in range(draft.frames):
        if draft.chance(0.5):  # every frame the same
            rng.bit_generator.state = state
        for tensor in (graph.input, *(graph.constants if frame == 0 else ())):
            _along(draft, tensor, frame)
        for op in graph.operators:
            if rambles:
                rambling(draft, op, frame)
            elif op in partial:
                partial_sums(draft, op, frame)
            else:
                whole_sums(draft, op, frame)
            _along(draft, op.output, frame)


def _homes(draft: Draft) -> None:
    """Buffers of every tensor: where it is first, and where it is moved to before it is used."""
    graph = draft.graph
    if draft.frames > 1:
        draft.features.add("frames")
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
    onward = {"card": not draft.slip(0.04), "stream": draft.chance(0.85)}
    if onward.get(first, draft.chance(0.1)):
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
        draft.features.add("move")
