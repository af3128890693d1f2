"""Computations nibble by nibble, as stretches of memory that a loop goes through: sums of two
tensors, what is taken out of an image as it is, and complete sums of an average."""

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.constants import stored
from pipeline.codegen.int4.views import as_pixels
from pipeline.codegen.int4.window import pixels
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.int8.job import Job
from pipeline.codegen.program import Program
from pipeline.codegen.render import render
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.errors import ThimbleError
from pipeline.graph.operator import Tensors, clipped_to
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.placing import Rearrange
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Finish, Slice

Stretch = tuple[int, ...]
"""First nibbles, of what is read and at last of what is written, and how many follow them."""


def add(job: Job) -> None:
    """Add by a table in flash, of what each pair of stored values gives."""
    op, program, step = job.operator(Add), job.program, job.step
    pieces = {program.buffer(piece).tensor: piece for piece in step.ins}
    at = stored(program.windows.sums, table(op, program.graph.tensors))
    known = Argument(f"&nn_sums4[{PLACE}]", Value(at))
    every = [*(pieces[name] for name in op.operands), step.out]
    _run(program, op.name, "nn_sum4", _sums(job, every), known)


def copy(job: Job) -> None:
    """Copy what an operator crops or joins; nothing that is in its place."""
    op, program, step = job.op, job.program, job.step
    pieces = {program.buffer(piece).tensor: program.buffer(piece) for piece in step.ins}
    taken = np.concatenate([as_pixels(pieces[name]) for name in op.inputs])
    made, (top, left), (down, right) = as_pixels(program.buffer(step.out)), (0, 0), (1, 1)
    if isinstance(op, Rearrange):
        (top, left, _), (down, right, _) = op.starts, op.steps
    cells = (
        np.stack([taken[top + down * y, left + right * x], made[y, x]]) for y, x in pixels(job)
    )
    found = [each for each in stretches(op.name, cells) if each[0] != each[1]]
    program.windows.copies |= bool(found)
    _run(program, op.name, "nn_copy4", found)


def finish(program: Program, op: AveragePool2d, step: Finish) -> None:
    acc, target = program.buffer(step.acc), program.buffer(step.out)
    box = step.out.box(target.shape, {})
    if not program.parts_apart(step.acc, step.out):
        raise ThimbleError(f"{op.name}: the plan's results overwrite sums still in use")
    places = np.stack([buffer.addresses(box).reshape(-1) for buffer in (acc, target)], axis=1)
    found = stretches(op.name, places[:, :, None], (acc.nibbles, target.nibbles))
    numbers = [(first // 2, cell, count) for first, cell, count in found]
    _run(program, op.name, _ending(program, op, acc.bits), numbers)


def _run(
    program: Program, owner: str, function: str, every: Iterable[Stretch], *known: Argument
) -> None:
    """A call for each stretch; no loop is around it."""
    for numbers in every:
        places = (Argument(PLACE, Value(number)) for number in numbers)
        program.run(owner, partial(Call, function, (*known, *places)))


def _sums(job: Job, pieces: Sequence[Slice]) -> list[Stretch]:
    """List the stretches of what a step makes."""
    buffers, step = [job.program.buffer(piece) for piece in pieces], job.step
    box = step.out.box(buffers[-1].shape, {})
    places = zip(buffers, pieces, strict=True)
    whole = [buffer.run(piece.box(buffer.shape, {})) for buffer, piece in places]
    firsts = tuple(first for first in whole if first is not None)
    if len(firsts) == len(whole):
        return [(*firsts, int(np.prod([stop - start for start, stop in box])))]
    elements = [as_pixels(buffer) for buffer in buffers]
    return stretches(step.op, (np.stack([each[at] for each in elements]) for at in pixels(job)))


def stretches(
    name: str, pixels: Iterable[IntArray], nibbles: Sequence[int] = (1, 1, 1)
) -> list[Stretch]:
    """Return the fewest in the order of ``pixels``, each (places, channels): where its elements are
    read, and in the last row written.

    Args:
        nibbles: of an element in each place.

    Raises:
        ThimbleError: an element would be written where one of its pixel is still to be read.
    """
    found = list[Stretch]()
    for cells in pixels:
        _check(name, cells)
        for cell in cells.T.tolist():
            *last, count = found[-1] if found else (0,)
            follows = zip(last, cell, nibbles, strict=False)
            if count and all(a + n * count == b for a, b, n in follows):
                found[-1] = (*last, count + 1)
            else:
                found.append((*cell, 1))
    return found


def _check(name: str, cells: IntArray) -> None:
    *reads, written = cells
    later = np.arange(len(written))[:, None] < np.arange(len(written))
    if any(((written[:, None] == read) & later).any() for read in reads):
        raise ThimbleError(
            f"{name}: generated code writes each element before it reads the next; try another "
            "strategy"
        )


def table(op: Add, tensors: Tensors) -> list[int]:
    """Tabulate for pairs (a, b) of stored values the sum as it is stored, two in a byte: 16 a + b
    is the number of a nibble."""
    operands = (tensors[name] for name in op.operands)
    kinds = ((np.arange(t.dtype.minimum, t.dtype.maximum + 1), t) for t in operands)
    numbers = (np.roll(each, t.dtype.minimum) - t.zero_point for each, t in kinds)  # by nibble
    grids = np.meshgrid(*numbers, indexing="ij")
    shifted = (grid << op.left_shift for grid in grids)
    parts = [r.apply(x) for r, x in zip(op.operand_requants, shifted, strict=True)]
    made = clipped_to(tensors[op.output], op.clip, op.requant.apply(parts[0] + parts[1])) & 15
    nibbles = made.reshape(-1, 2)
    return [int(low | high << 4) for low, high in nibbles]


def _ending(program: Program, op: AveragePool2d, bits: int) -> str:
    """Return the name of the function that makes nibbles of sums of ``bits``."""
    known = program.windows.endings
    if op.name not in known:
        name, end = program.names.fresh(op.name, "finish"), ending(program, op)
        text = render(
            "int4/finish.c.j2", name=name, bits=bits, end=end, count=int(np.prod(op.kernel)),
            about=f"{op.name}: complete sums to {program.graph.tensors[op.output].dtype}",
            zero=program.graph.tensors[op.inputs[0]].zero_point,
        )  # fmt: skip
        known[op.name] = name, text
        program.headers |= {"nn_cells.h", "nn_int8.h"}
    return known[op.name][0]


WRITERS = {"int4.sum": add, "int4.copy": copy}
