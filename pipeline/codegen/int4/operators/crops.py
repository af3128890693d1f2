"""Pixels that are taken out of an image as they are."""

from __future__ import annotations

from functools import partial

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.int4.lines import are_disjoint, pixels
from pipeline.codegen.int4.stretches import stretches
from pipeline.codegen.int4.views import as_pixels
from pipeline.codegen.program import Program
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.graph.operators.rearrange import Rearrange
from pipeline.plan.vocabulary import Compute


def emit(program: Program, op: Rearrange, step: Compute) -> None:
    """Of a row or of all; no loop is around it. A call for each stretch that lies in one piece."""
    source, target = program.buffer(step.ins[0]), program.buffer(step.out)
    box = step.out.box(target.shape, {})
    taken, made = as_pixels(source), as_pixels(target)
    apart = are_disjoint(source, step.ins[0].box(source.shape, {}), target, box)
    (top, left, _), (down, right, _) = op.starts, op.steps
    cells = (
        np.stack([taken[top + down * y, left + right * x], made[y, x]])
        for y, x in pixels(step, box, apart)
    )
    program.windows.copies = True
    for numbers in stretches(op.name, cells):
        arguments = tuple(Argument(PLACE, Value(number)) for number in numbers)
        program.run(op.name, partial(Call, "nn_copy4", arguments))
