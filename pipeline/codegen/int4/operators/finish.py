"""Complete sums of an average, which become values of 4 bits."""

from __future__ import annotations

from functools import partial

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.int4.lines import are_disjoint
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.program import Program
from pipeline.codegen.render import render
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.errors import ThimbleError
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.plan.vocabulary import Finish


def emit(program: Program, op: AveragePool2d, step: Finish) -> None:
    """A call for each stretch of sums and of what they become; no loop is around it."""
    acc, target = program.buffer(step.acc), program.buffer(step.out)
    box = step.out.box(target.shape, {})
    if not are_disjoint(acc, box, target, box):
        raise ThimbleError(f"{op.name}: the plan's results overwrite sums still in use")
    sums, cells = (buffer.addresses(box).reshape(-1) for buffer in (acc, target))
    torn = (np.diff(sums) != acc.nibbles) | (np.diff(cells) != target.nibbles)
    name = _kernel(program, op, acc.bits)
    for some in np.split(np.arange(len(cells)), np.flatnonzero(torn) + 1):
        numbers = int(sums[some[0]]) // 2, int(cells[some[0]]), len(some)
        arguments = tuple(Argument(PLACE, Value(number)) for number in numbers)
        program.run(op.name, partial(Call, name, arguments))


def _kernel(program: Program, op: AveragePool2d, bits: int) -> str:
    """The name of the function."""
    known = program.windows.endings
    if op.name not in known:
        name, end = program.names.fresh(op.name, "finish"), ending(program, op)
        text = render(
            "int4/finish.c.j2",
            name=name,
            about=f"{op.name}: complete sums to {program.graph.tensors[op.output].dtype}",
            bits=bits,
            end=end,
            count=int(np.prod(op.kernel)),
            zero=program.graph.tensors[op.inputs[0]].zero_point,
        )
        known[op.name] = name, text
        program.headers |= {"nn_cells.h", "nn_int8.h"}
    return known[op.name][0]
