"""Peaks counted in ways that share no code with the strategies: of plans, and of any order."""

from itertools import product

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.plan.steps import touched
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from pipeline.search.chains.traversals import Peels, ranks
from pipeline.search.view.pixels import Layer, read_at

Pixel = tuple[int, int]


def pmu_nibbles(plan: Plan) -> int:
    """The largest union of cells of activation and accumulator buffers in SRAM that are live, from
    the first to the last step that names them; the resident input lives from the start and the
    output to the end. Loop bodies once: every turn names the same buffers."""
    steps = list(statements(plan))
    used: dict[str, list[int]] = {name: [0] for name in plan.resident}
    used[plan.output] = [len(steps)]
    for n, step in enumerate(steps):
        for piece in touched(step):
            used.setdefault(piece.buffer, []).append(n)
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


def orders_of(plan: Plan, op: str) -> list[Pixel]:
    """The output pixels of ``op`` in the order the plan computes them."""
    found: list[Pixel] = []
    for step in statements(plan):
        if isinstance(step, Compute) and step.op == op:
            top, left = (int(n) for n in step.out.lo[:2])  # type: ignore[arg-type]
            inside = [o[:2] for o in step.order] or product(*map(range, step.out.size[:2]))
            found += [(top + y, left + x) for y, x in inside]  # type: ignore[misc]
    return found


def runs(elements: IntArray, nibbles: int) -> int:
    """Pieces in which the elements of a pixel lie."""
    return int((np.diff(elements) != nibbles).sum()) + 1


def freed(layer: Layer, peels: Peels) -> IntArray:
    """Input pixels that die with each output unit, and, as the first entry, those never read.

    Shape (outputs + 1,): entry n + 1 belongs to unit n.
    """
    last = read_at(layer.op, layer.operand, layer.tensors, ranks(*layer.outputs[:2], peels))
    return np.bincount(last.reshape(-1) + 1, minlength=layer.outputs.number + 1)


def peak_nibbles(layer: Layer, peels: Peels) -> int:
    """The most nibbles live at once when any output may lie in any free nibble, of any width.

    A unit reads all its inputs before it writes, so the inputs that die with unit n are free
    already when its outputs are stored: after unit n there are In - freed(0…n) + (n + 1) fout.
    """
    dead = np.cumsum(freed(layer, peels))[1:] * layer.inputs.each
    written = np.arange(1, layer.outputs.number + 1) * layer.outputs.each
    return layer.inputs.total + max(0, int((written - dead).max()))
