"""Accumulators: opened by Clear, ended by Finish."""

from math import prod

from pipeline.codegen.c import nest
from pipeline.codegen.c.values import Value
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import arena_view
from pipeline.codegen.int8.operators.copies import fill
from pipeline.codegen.program import Program
from pipeline.errors import ThimbleError
from pipeline.graph.operator import Operator
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.requant import INT32
from pipeline.plan.vocabulary import Buffer, Clear, Finish

MOST_RINGS = 3
"""Axes."""


def clear(program: Program, step: Clear) -> None:
    op = program.operators[step.op]
    opened = op.reduction.start(program.graph.tensors[op.output].dtype)
    out = arena_view(program, "out", step.acc, program.box(step.acc), MOST_RINGS)
    fill(program, op.name, f"{op.name}: nothing added yet", out, opened, "clear")


def finish(program: Program, step: Finish) -> None:
    op = program.operators[step.op]
    acc, target = program.buffer(step.acc), program.buffer(step.out)
    box = program.box(step.out)
    apart = program.apart(acc, target)
    if not apart and max(step.unit, default=1) > 1:
        _check_order(op.name, program, step)
    view = arena_view(program, "in", step.acc, box, MOST_RINGS)
    out = arena_view(program, "out", step.out, box, MOST_RINGS)
    end = ending(program, op, _rounded(program, op, acc))
    strides = [out.strides, view.strides]
    last = [0] * (len(box) - 1) + [1]
    if end.per_channel:  # kept apart from other axes: tables are by channel
        strides.append(tuple(last))
    loops, counts = nest.nest([part.extent for part in box], strides, [out, view])
    program.call(
        op.name, "int8/finish",
        f"{op.name}: complete sums to {program.graph.tensors[op.output].dtype}",
        {"in": view, "out": out},
        {**counts, "channel": box[-1].start if end.per_channel else Value(0)},
        apart, "finish", nest=loops, ending=end,
        count=prod(op.kernel) if end.counted and isinstance(op, Pool2d) else 0,
        zero=program.graph.tensors[op.inputs[0]].zero_point,
    )  # fmt: skip


def _rounded(program: Program, op: Operator, acc: Buffer) -> tuple[int, int]:
    """Return what rounded accumulators may stand for; nothing beyond their sums for exact ones."""
    if acc.step == 1:
        return 0, 0
    low, high = op.partial_sums(program.graph.tensors, program.graph.constants)
    if max(-low, high) + acc.step > INT32[1]:
        raise ThimbleError(f"{op.name}: its sums reach {low} … {high}, too many to be rounded")
    reach = acc.step << (acc.bits - 1)
    return -reach, reach


def _check_order(name: str, program: Program, step: Finish) -> None:
    """Results over their own sums, packed closer: row by row none is overwritten before it is read.

    Element n is stored at ``base + n * narrow`` and read at ``base + n * wide``, so a write never
    goes beyond what was read already.
    """
    view = arena_view(program, "in", step.acc, program.box(step.out))
    out = arena_view(program, "out", step.out, program.box(step.out))
    behind = (view.offset - out.offset).low >= 0 and view.bytes >= out.bytes
    if not behind or any(a < b for a, b in zip(view.strides, out.strides, strict=True)):
        raise ThimbleError(f"{name}: the plan's results overwrite sums still in use")
