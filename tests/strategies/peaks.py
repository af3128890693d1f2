"""Peak memory counted in ways that share no code with the strategies."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Clear, Compute, Finish, Loop, Move, Plan, Slice, Step

Pixel = tuple[int, int]


def pmu_nibbles(plan: Plan) -> int:
    """The largest union of cells of activation and accumulator buffers in SRAM that are live, from
    the first to the last step that names them; the resident input lives from the start and the
    output to the end."""
    steps = list(_flat(plan.tracks[0].steps))
    used: dict[str, list[int]] = {name: [0] for name in plan.resident}
    used[plan.output] = [len(steps)]
    for n, step in enumerate(steps):
        for buffer in _buffers(step):
            used.setdefault(buffer, []).append(n)
    held = {
        b.name: set(b.cells(b.box).reshape(-1).tolist())
        for b in plan.buffers
        if b.memory == "sram" and b.role in ("activation", "accumulator")
    }
    return max(
        len(set().union(*(c for b, c in held.items() if min(used[b]) <= n <= max(used[b]))))
        for n in range(len(steps) + 1)
    )


def arena_nibbles(plan: Plan) -> int:
    """The highest nibble that is not a constant's, plus one."""
    return max(
        int(b.cells(b.box).max()) + 1
        for b in plan.buffers
        if b.memory == "sram" and b.role != "constant"
    )


def _flat(steps: tuple[Step, ...]) -> list[Step]:
    """Loop bodies once: every turn names the same buffers."""
    return [s for step in steps for s in (_flat(step.body) if isinstance(step, Loop) else [step])]


def _buffers(step: Step) -> list[str]:
    slices: list[Slice] = []
    match step:
        case Compute(out=out, ins=ins):
            slices = [out, *ins]
        case Clear(acc=acc):
            slices = [acc]
        case Finish(acc=acc, out=out, ins=ins):
            slices = [acc, out, *ins]
        case Move(src=src, dst=dst):
            slices = [src, dst]
    return [part.buffer for part in slices]


def window(
    pixel: Pixel, kernel: Pixel, stride: Pixel, padding: Pixel, dilation: Pixel, size: Pixel
) -> set[Pixel]:
    """The input pixels that output ``pixel`` reads; padding (top, left)."""
    y, x = (p * s - q for p, s, q in zip(pixel, stride, padding, strict=True))
    every = product(range(kernel[0]), range(kernel[1]))
    read = {(y + i * dilation[0], x + j * dilation[1]) for i, j in every}
    return {(a, b) for a, b in read if 0 <= a < size[0] and 0 <= b < size[1]}


def simulate(reads: list[set[Pixel]], inputs: int, fin: int, fout: int) -> int:
    """Play a layer unit by unit with sets; ``reads`` in the order of computation. Inputs that no
    later unit reads are gone before a unit's outputs are stored."""
    live = inputs * fin
    peak = live
    for n in range(len(reads)):
        later: set[Pixel] = set().union(*reads[n + 1 :])
        peak = max(peak, len(later) * fin + (n + 1) * fout)
    return peak


def best_of_all_orders(
    reads: Sequence[set[Pixel]], inputs: int, fin: int, fout: int
) -> tuple[int, int]:
    """The least peak that any order of the outputs reaches, by dynamic programming over the sets of
    outputs already computed: (outputs written after dying inputs are freed, and before)."""
    bits = {pixel: 1 << n for n, pixel in enumerate(sorted(set().union(*reads)))}
    masks = [sum(bits[pixel] for pixel in read) for read in reads]
    total = len(reads)
    sets = np.arange(1 << total, dtype=np.uint64)
    needed = np.zeros_like(sets)  # inputs read by outputs outside the set
    for pixel, mask in enumerate(masks):
        outside = (sets >> np.uint64(pixel)) & np.uint64(1) == 0
        needed[outside] |= np.uint64(mask)
    live = np.bitwise_count(needed).astype(np.int64) * fin
    computed = np.bitwise_count(sets).astype(np.int64)
    live[0] = inputs * fin  # the input is there, read or not
    after = np.full(len(sets), np.iinfo(np.int64).max)
    before = after.copy()
    after[0] = before[0] = live[0]
    for count in range(1, total + 1):
        chosen = np.flatnonzero(computed == count)
        for pixel in range(total):
            has = chosen[(chosen >> pixel) & 1 == 1]
            previous = has & ~(1 << pixel)
            after[has] = np.minimum(after[has], after[previous])
            step = np.maximum(before[previous], live[previous] + count * fout)
            before[has] = np.minimum(before[has], step)
        after[chosen] = np.maximum(after[chosen], live[chosen] + count * fout)
    return int(after[-1]), int(before[-1])


def orders_of(plan: Plan, op: str) -> list[Pixel]:
    """The output pixels of ``op`` in the order the plan computes them."""
    found: list[Pixel] = []
    for step in _flat(plan.tracks[0].steps):
        if isinstance(step, Compute) and step.op == op:
            top, left = (int(n) for n in step.out.lo[:2])  # type: ignore[arg-type]
            inside = [o[:2] for o in step.order] or product(*map(range, step.out.size[:2]))
            found += [(top + y, left + x) for y, x in inside]  # type: ignore[misc]
    return found


def runs(elements: IntArray, nibbles: int) -> int:
    """Pieces in which the elements of a pixel lie."""
    return int((np.diff(elements) != nibbles).sum()) + 1
