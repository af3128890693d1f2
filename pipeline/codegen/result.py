"""Places of the results, and what is left of the inputs when they are read."""

import numpy as np

from pipeline.codegen.program import Program
from pipeline.errors import ThimbleError
from pipeline.graph.tensor import IntArray
from pipeline.plan.steps import written
from pipeline.plan.vocabulary import Buffer
from pipeline.plan.well_formed import statements

MOST_ALIGNED = 4
"""Bytes."""


def places(program: Program) -> list[int]:
    """Return the bytes where the results begin. If one is scattered, or off a multiple of its
    elements, all are put together at byte 0 and after it, in place: nothing else lives in the arena
    once they are computed.

    Raises:
        ThimbleError: where state does.
    """
    buffers = [program.plan.buffer[name] for name in program.plan.outputs]
    found = [_first(buffer) for buffer in buffers]
    if None not in found:
        return [first for first in found if first is not None]
    if program.plan.states:
        raise ThimbleError(
            "an output that lies in several pieces would be put together where state is kept: "
            "choose strategy=ordinary"
        )
    unit, source, begins = min(buffer.nibbles for buffer in buffers), list[IntArray](), {}
    for buffer in sorted(buffers, key=lambda each: -each.bits):  # so that none needs padding
        begins[buffer.name] = unit * sum(part.size for part in source)
        cells = buffer.addresses(buffer.box).reshape(-1, 1) + np.arange(0, buffer.nibbles, unit)
        source.append(cells.reshape(-1))
    taken = np.concatenate(source)[None]
    program.permute(taken, unit * np.arange(taken.size)[None], unit)
    return [begins[buffer.name] // 2 for buffer in buffers]


def _first(buffer: Buffer) -> int | None:
    """The byte where a result begins that is in one piece and on a multiple of its elements."""
    width, first = buffer.bits // 8, buffer.run(buffer.box)
    cells = buffer.addresses(buffer.box).reshape(-1)
    if first is None and (np.diff(cells) == buffer.nibbles).all():
        first = int(cells[0])
    whole = first is not None and first // 2 % min(width, MOST_ALIGNED) == 0
    return first // 2 if whole and first is not None else None


def inputs_are_kept(program: Program) -> bool:
    """Check whether no step writes to where the inputs lie."""
    plan = program.plan
    names = {name for step in statements(plan) for name in getattr(step, "scratch", ())}
    names |= {piece.buffer for step in statements(plan) if (piece := written(step))}
    written_to = [plan.buffer[name] for name in names]
    return not any(b.meets(other, granule=2) for b in program.input_buffers for other in written_to)
