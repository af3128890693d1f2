"""A move within the arena: a permutation, carried out in place along its cycles.

Whole pixels move where source and target pixels lie on one grid, else single elements. The order
is known at compile time, so each cycle is a list of places in flash: the first one is kept aside,
then each takes over its successor, the last one what was kept. A chain ends at a place that is only
read.
"""

from __future__ import annotations

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.constants import stored
from pipeline.codegen.cycles import decompose
from pipeline.codegen.int4.views import grid
from pipeline.codegen.program import Program
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.errors import ThimbleError
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.vocabulary import Buffer, Move

MOVES = "permutations"
"""What a report calls the steps that only move data."""


def emit(program: Program, step: Move) -> None:
    """Of whatever elements; no loop is around it."""
    source, target = program.buffer(step.src), program.buffer(step.dst)
    box = step.src.box(source.shape, {})
    if step.dst.box(target.shape, {}) != box:
        raise ThimbleError(f"a move of {source.tensor} writes other elements than it reads")
    permute(program, _elements(source, box), _elements(target, box), source.nibbles)


def permute(program: Program, sources: IntArray, targets: IntArray, nibbles: int) -> None:
    """Elements ``nibbles`` wide from ``sources`` to ``targets`` (pixels, channels)."""
    windows = program.windows
    base, unit, taken, given = _units(sources, targets, nibbles)
    cycles, chains = decompose(taken, given)
    if not cycles and not chains:
        return
    at = stored(windows.cycles, [n for at in (*cycles, *chains) for n in (len(at), *at)])
    windows.units.add(unit)
    numbers = (Argument(PLACE, Value(n)) for n in (len(cycles), len(chains), base))
    call = Call(f"nn_permute_{unit}", (Argument(f"&nn_cycles[{PLACE}]", Value(at)), *numbers))
    program.run(MOVES, lambda: call)


def _elements(buffer: Buffer, box: Box) -> IntArray:
    """First nibbles of the elements of ``box``: (pixels, channels)."""
    extents = tuple(stop - start for start, stop in box)
    found = np.broadcast_to(buffer.addresses(box), extents)
    return found.reshape(-1, grid(extents)[2])


def _units(
    source: IntArray, target: IntArray, nibbles: int
) -> tuple[int, int, list[int], list[int]]:
    """(base nibble, nibbles of a unit, source units, target units)."""
    base = int(min(source.min(), target.min()))
    unit = source.shape[1] * nibbles
    steps = np.concatenate([np.diff(source, axis=1), np.diff(target, axis=1)])
    firsts = np.concatenate([source[:, 0], target[:, 0]]) - base
    if (steps != nibbles).any() or (firsts % unit).any():
        unit = nibbles
        if ((np.concatenate([source, target]) - base) % unit).any():
            unit = 1
            source, target = (
                (a[:, :, None] + np.arange(nibbles)).reshape(len(a), -1) for a in (source, target)
            )
    else:
        source, target = source[:, :1], target[:, :1]
    as_units = [((a - base) // unit).reshape(-1).tolist() for a in (source, target)]
    return base, unit, as_units[0], as_units[1]
