"""Place of the result, and what is left of the input when it is read."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.program import Program
from pipeline.plan.steps import written
from pipeline.plan.well_formed import statements

MOST_ALIGNED = 4
"""Bytes."""


def place(program: Program) -> int:
    """The byte where the result begins. One that is torn apart, or off a multiple of its elements,
    is put together at byte 0, in place: nothing else lives in the arena once it is computed."""
    buffer = program.plan.buffer[program.plan.output]
    width, first = buffer.bits // 8, buffer.run(buffer.box)
    elements = buffer.addresses(buffer.box).reshape(1, -1)
    packed = np.arange(elements.size).reshape(1, -1) * buffer.nibbles
    if first is None and (elements - elements[0, 0] == packed).all():
        first = int(elements[0, 0])
    if first is not None and first // 2 % min(width, MOST_ALIGNED) == 0:
        return first // 2
    program.permute(elements, packed, buffer.nibbles)
    return 0


def input_is_kept(program: Program) -> bool:
    """Check whether no step writes to where the input lies."""
    plan = program.plan
    names = {name for step in statements(plan) for name in getattr(step, "scratch", ())}
    names |= {piece.buffer for step in statements(plan) if (piece := written(step))}
    return not any(program.input_buffer.meets(plan.buffer[name], granule=2) for name in names)
