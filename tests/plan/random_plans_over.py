"""Outputs in place: over the input that a step needs for the last time."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from pipeline.graph.tensor import Box
from pipeline.plan.vocabulary import Affine, Blocks, Buffer, Compute, Rows, Table
from tests.plan.random_plans_draft import Draft, Place, Task
from tests.plan.reference_places import Wrong, nibbles
from tests.plan.reference_places import units as computed
from tests.plan.reference_reads import window

Span = tuple[int, int]


def extent(buffer: Buffer) -> Span:
    """The lowest nibble, and one past the highest."""
    if isinstance(buffer.map, Table):
        low, high = min(buffer.map.cells), max(buffer.map.cells)
    elif isinstance(buffer.map, Rows):
        reaches = [s * (n - 1) for s, n in zip(buffer.map.strides, buffer.shape[1:], strict=True)]
        low = min(buffer.map.cells) + sum(min(0, reach) for reach in reaches)
        high = max(buffer.map.cells) + sum(max(0, reach) for reach in reaches)
    elif isinstance(buffer.map, Blocks):
        last = buffer.map.width * (prod(buffer.shape[1:]) - 1)
        low, high = min(buffer.map.cells), max(buffer.map.cells) + last
    else:
        wrap = buffer.map.wrap or (0,) * len(buffer.shape)
        axes = zip(buffer.shape, buffer.map.strides, wrap, strict=True)
        reaches = [stride * (min(n, w or n) - 1) for n, stride, w in axes]
        low = buffer.map.base + sum(min(0, reach) for reach in reaches)
        high = buffer.map.base + sum(max(0, reach) for reach in reaches)
    reach = buffer.copy_stride * (buffer.copies - 1)
    return low + min(0, reach), high + max(0, reach) + buffer.bits // 4


def moved(buffer: Buffer, by: int) -> Buffer:
    if isinstance(buffer.map, Table | Rows | Blocks):
        cells = tuple(cell + by for cell in buffer.map.cells)
        return replace(buffer, map=replace(buffer.map, cells=cells))
    assert isinstance(buffer.map, Affine)
    return replace(buffer, map=replace(buffer.map, base=buffer.map.base + by))


def meet(a: Span, b: Span) -> bool:
    """Two lives, both ends included."""
    return a[0] <= b[1] and b[0] <= a[1]


def over_inputs(draft: Draft, row: list[Task], lives: dict[str, Span]) -> None:
    """Put the output of a step that makes all of a tensor over an input that it needs last: each
    element into cells that are free by then, or the whole shifted by a little."""
    if draft.frames > 1:
        return
    for n, task in enumerate(row):
        step = task.step
        if not isinstance(step, Compute) or step.partial:
            continue
        out = draft.buffers[step.out.buffer]
        dying = [
            buffer
            for buffer in (draft.buffers[piece.buffer] for piece in step.ins)
            if lives[buffer.name][1] == n and buffer.memory == out.memory
        ]
        if lives[out.name][0] != n or step.out.size != out.shape or not dying:
            continue
        over = draft.pick(*dying)
        if draft.chance(0.7):
            busy = {
                cell
                for buffer in draft.buffers.values()
                if meet(lives[buffer.name], lives[out.name])
                if buffer.memory == out.memory and buffer.name not in (out.name, over.name)
                for cell in range(*extent(buffer))
            }
            try:
                cells = _woven(draft, step, out, over, busy)
            except Wrong:  # an order that names a unit twice
                continue
            if len(cells) < prod(out.shape):
                continue
            draft.buffers[out.name] = replace(out, map=Table(tuple(cells.values())))
        else:
            even = 2 if max(out.bits, over.bits) > 4 else 1
            shift = extent(over)[0] - extent(out)[0] + even * (draft.below(10) - 6)
            draft.buffers[out.name] = moved(out, max(shift, -extent(out)[0]))
        draft.features.add("in place")
        return


def _woven(
    draft: Draft, step: Compute, out: Buffer, over: Buffer, busy: set[int]
) -> dict[Place, int]:
    """For each element of ``out`` a cell that no unit needs afterwards, row-major; fewer than
    there are elements where cells run out. A slip frees cells a unit early."""
    whole: Box = tuple((0, n) for n in out.shape)
    free_at = _last_reads(draft, step, over, whole)
    early, width = int(draft.slip(0.4)), out.bits // 4
    top = extent(over)[1]
    cells: dict[Place, int] = {}
    taken = set(busy)
    for when, block in enumerate(computed(whole, step.unit, step.order)):
        for place in block:
            free = [
                cell
                for cell in range(0, top + 40, min(width, 2))
                if not any(
                    part in taken or free_at.get(part, -1) > when + early
                    for part in range(cell, cell + width)
                )
            ]
            inside = [cell for cell in free if cell < top][-3:] or free[:1]
            if not inside:
                return {}
            cells[place] = draft.pick(*inside)
            taken |= set(range(cells[place], cells[place] + width))
    return {place: cells[place] for place in product(*(range(n) for n in out.shape))}


def _last_reads(draft: Draft, step: Compute, over: Buffer, whole: Box) -> dict[int, int]:
    """The number of the unit that reads each nibble of ``over`` last."""
    op = draft.graph.operator(step.op)
    operands = [o for term in op.terms(draft.graph.tensors) for o in term.operands]
    last: dict[int, int] = {}
    for when, block in enumerate(computed(whole, step.unit, step.order)):
        for operand in (o for o in operands if o.tensor == over.tensor):
            for place in {e for made in block for e in window(operand, made)}:
                if all(0 <= i < n for i, n in zip(place, over.shape, strict=True)):
                    last |= dict.fromkeys(nibbles(over, 0, place), when)
    return last
