"""The input pooled while it arrives: one row of sums, and the image never exists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.codegen.constants import c_bits
from pipeline.codegen.int4.views import as_pixels, grid
from pipeline.codegen.int8.ending import ending
from pipeline.codegen.program import Program
from pipeline.codegen.render import render
from pipeline.errors import ThimbleError
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import Box, Tensor
from pipeline.kernels.int4 import values
from pipeline.plan.vocabulary import Buffer, Clear, Compute, Finish, Slice, Step

MOST_COUNTED = 0xFFFF


@dataclass(frozen=True)
class Pooling:
    """
    Attributes:
        sums, out: where sums and results are.
        events: how many steps of the plan it is.
    """

    op: Pool2d
    sums: Buffer
    out: Buffer
    events: int


def pooling(program: Program, image: Tensor, events: Sequence[Step]) -> Pooling | None:
    """For each row of outputs: Clear, one partial Compute an input row, Finish; None: the steps are
    something else.

    Raises:
        ThimbleError: for such steps that ``nn_feed`` cannot follow.
    """
    first = events[0] if events else None
    if not isinstance(first, Clear):
        return None
    op = program.operators[first.op]
    if not isinstance(op, Pool2d) or op.inputs != (image.name,):
        return None
    alone = all(getattr(step, "op", "") == op.name for step in events)  # no others between them
    if not alone or (op.stride, op.dilation) != (op.kernel, (1, 1)):
        return None
    rows, columns, channels = grid(program.graph.tensors[op.output].shape)
    width, height = image.shape[1], op.kernel[0] + 2
    sums, count = program.buffer(first.acc), rows * height
    out: Buffer | None = None
    for row in range(rows):
        target: Box = ((row, row + 1), (0, columns), (0, channels))
        steps = events[row * height : (row + 1) * height]
        read = range(row * op.kernel[0], (row + 1) * op.kernel[0])
        wanted: list[tuple[str, Box, Box | None]] = [
            ("Clear", target, None),
            *(("Compute", target, ((y, y + 1), (0, width), (0, channels))) for y in read),
            ("Finish", target, target),
        ]
        finish = steps[-1] if steps else None
        found = [_signature(program, step, op.name) for step in steps]
        if found != wanted or not isinstance(finish, Finish):
            raise ThimbleError(f"{op.name}: generated code pools row after row, the plan does not")
        out = program.buffer(finish.out)
        _check_row(sums, out, row, columns, channels)
    assert out is not None
    _check_size(op, image, width * channels)
    return Pooling(op, sums, out, count)


def source(program: Program, image: Tensor, found: Pooling, types: Mapping[str, str]) -> str:
    """C of the counters and of ``nn_feed``."""
    op, target, end = found.op, program.graph.tensors[found.op.output], ending(program, found.op)
    adds, requant = op.combine == "add", getattr(op, "requant", PowerOfTwo())
    # of a sum and all that shifts make of it; at least an int's
    held = c_bits(values(op, program.graph), signed=True) if isinstance(requant, PowerOfTwo) else 32
    calls = "nn_" in end.scaled("") + end.stored("")
    program.headers |= {"nn_cells.h"} | ({"nn_int8.h"} if calls else set())
    return render(
        "frame/feed_pool.c.j2", op=op, adds=adds, kernel=op.kernel, rows=image.shape[0],
        columns=image.shape[1], channels=grid(target.shape)[2], signed=image.dtype.signed,
        sums=int(as_pixels(found.sums)[0, 0, 0]), sum_bits=found.sums.bits,
        value_bits=max(16, found.sums.bits, held), zero=image.zero_point if adds else 0,
        view=program.windows.tables.view(found.out), bits=target.dtype.bits, end=end, **types,
    )  # fmt: skip


def _check_size(op: Pool2d, image: Tensor, row: int) -> None:
    if max(image.shape[0], row) > MOST_COUNTED:
        raise ThimbleError(
            f"{op.name}: generated code counts rows of {image.name} and elements of a row as they "
            f"arrive in 16 bits, to {MOST_COUNTED:,}; it has {image.shape[0]:,} rows of "
            f"{row:,}: use a smaller model.input_shape"
        )
    if any(op.padding):
        raise ThimbleError(f"{op.name}: pooling while data arrives has no padding")
    if image.dtype.bits > 8:
        raise ThimbleError(f"{image.name}: it is pooled byte by byte, not as {image.dtype}")


def _signature(program: Program, step: Step, op: str) -> tuple[str, Box, Box | None] | None:
    def box(piece: Slice) -> Box:
        return piece.box(program.buffer(piece).shape, {})

    match step:
        case Clear(op=name, acc=acc) if name == op:
            return "Clear", box(acc), None
        case Compute(op=name, out=out, ins=ins, partial=True) if name == op:
            return "Compute", box(out), box(ins[0])
        case Finish(op=name, acc=acc, out=out) if name == op:
            return "Finish", box(acc), box(out)
    return None


def _check_row(sums: Buffer, out: Buffer, row: int, columns: int, channels: int) -> None:
    """Sums of every row in the same place, side by side; a pixel finished as soon as its window is
    complete does not touch sums still in use."""
    if sums.bits < 8:
        raise ThimbleError(f"{sums.name}: generated code keeps sums in bytes, not {sums.bits} bits")
    elements, every = as_pixels(sums), range(columns)
    here = elements[row].reshape(-1) - elements[0, 0, 0]
    if here.tolist() != [sums.nibbles * n for n in range(columns * channels)]:
        raise ThimbleError(f"{sums.name}: generated code keeps one row of sums in one piece")
    for x in every:
        done: Box = ((row, row + 1), (x, x + 1), (0, channels))
        later: Box = ((row, row + 1), (x + 1, columns), (0, channels))
        if x + 1 < columns and np.isin(out.cells(done), sums.cells(later)).any():
            raise ThimbleError(f"{out.name}: a finished pixel would overwrite sums still in use")
