"""The input as it arrives: pooled on the way through a row of accumulators, or simply stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.codegen.int4.kernel import ranges, shifts
from pipeline.codegen.int4.lines import are_disjoint
from pipeline.codegen.int4.operators import pool2d
from pipeline.codegen.int4.program import Program, c_bits
from pipeline.codegen.int4.views import as_pixels, grid
from pipeline.codegen.render import render
from pipeline.errors import ThimbleError
from pipeline.graph.operators.pool2d import AveragePool2d, Pool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import Box, Tensor
from pipeline.plan.unrolled import Env
from pipeline.plan.vocabulary import Buffer, Clear, Compute, Finish, Move, Slice, Step, packed

Events = Sequence[tuple[Step, Env]]

MOST_COUNTED = 0xFFFF
ARRIVAL = "input"
"""What a report calls taking the input as it is."""


@dataclass(frozen=True)
class Feed:
    """
    Attributes:
        source: C of the variables and of ``nn_feed``.
        complete: C expression: the input is whole.
        rewind: C statements: nothing has arrived.
        step: the operator that is done on the way, or ``ARRIVAL``.
    """

    source: str
    complete: str
    rewind: tuple[str, ...]
    step: str = ARRIVAL


def split(program: Program, events: Events) -> tuple[Feed, Events]:
    """The code that takes the input, and the steps left for ``nn_invoke``.

    Raises:
        ThimbleError: for a way of taking the input that ``nn_feed`` does not know.
    """
    image = program.graph.tensors[program.graph.input]
    if image.dtype.bits > 8:
        raise ThimbleError(
            f"{image.name}: generated code takes one byte an element, not {image.dtype}"
        )
    resident = _arriving(program, image)
    if program.plan.memory[resident.memory].kind != "stream":
        return _stored(program, image, resident), events
    first = events[0][0] if events else None
    if isinstance(first, Move):
        return _moved(program, image, resident, events)
    if isinstance(first, Clear):
        return _pooled(program, image, resident, events)
    raise ThimbleError(
        f"generated code cannot take {image.name} as this plan reads it from the stream"
    )


def _arriving(program: Program, image: Tensor) -> Buffer:
    """The one buffer that holds the input before the first step. A stream's order is fixed: the
    image row by row, a pixel's channels side by side."""
    named = [program.plan.buffer[name] for name in program.plan.resident]
    found = [buffer for buffer in named if buffer.tensor == image.name]
    if len(found) != 1:
        raise ThimbleError(
            f"generated code takes {image.name} into one place, the plan has it in "
            f"{' and '.join(buffer.name for buffer in found) or 'none'}"
        )
    (buffer,) = found
    if program.plan.memory[buffer.memory].kind == "stream":
        row_major = replace(buffer, map=packed(buffer.shape, buffer.bits))
        if (buffer.addresses(buffer.box) != row_major.addresses(buffer.box)).any():
            raise ThimbleError(
                f"generated code takes {image.name} row by row as it arrives; the plan's buffer "
                f"{buffer.name} expects another order"
            )
    return buffer


def _stored(program: Program, image: Tensor, buffer: Buffer) -> Feed:
    view = program.tables.view(buffer)
    source = render(
        "int4/feed_store.c.j2",
        view=view,
        grid=grid(image.shape),
        bits=image.dtype.bits,
        scattered=bool(program.tables.scatter),
        total=image.size,
    )
    return Feed(source, "nn_fed == NN_INPUT_BYTES", ("nn_fed = 0;",))


def _moved(
    program: Program, image: Tensor, resident: Buffer, events: Events
) -> tuple[Feed, Events]:
    """Moves from the stream that cover the image row by row, into one buffer."""
    expected, targets, index = 0, set(), 0
    for step, env in events:
        if not isinstance(step, Move) or step.src.buffer != resident.name:
            break
        box = step.src.box(resident.shape, env)
        target = program.buffer(step.dst)
        whole = all(r == (0, extent) for r, extent in zip(box[1:], image.shape[1:], strict=True))
        if box[0][0] != expected or not whole or step.dst.box(target.shape, env) != box:
            raise ThimbleError(f"generated code stores {image.name} row by row, the plan does not")
        expected, index = box[0][1], index + 1
        targets.add(target.name)
    if expected != image.shape[0] or len(targets) != 1:
        raise ThimbleError(f"the plan does not store the whole of {image.name} before it is used")
    return _stored(program, image, program.plan.buffer[targets.pop()]), events[index:]


def _pooled(
    program: Program, image: Tensor, resident: Buffer, events: Events
) -> tuple[Feed, Events]:
    """For each row of outputs: Clear, one partial Compute an input row, Finish."""
    first = events[0][0]
    assert isinstance(first, Clear)
    op = program.graph.operator(first.op)
    if not isinstance(op, Pool2d) or op.inputs != (image.name,) or op.stride != op.kernel:
        raise ThimbleError(f"{op.name}: only pooling without overlap is done while data arrives")
    rows, columns, channels = grid(program.graph.tensors[op.output].shape)
    width = image.shape[1]
    if max(image.shape[0], width * channels) > MOST_COUNTED:
        raise ThimbleError(
            f"{op.name}: generated code counts rows of {image.name} and elements of a row as they "
            f"arrive in 16 bits, to {MOST_COUNTED:,}; it has {image.shape[0]:,} rows of "
            f"{width * channels:,}: use a smaller model.input_shape"
        )
    sums = program.buffer(first.acc)
    count = rows * (op.kernel[0] + 2)
    taken, out = list(events[:count]), None
    for row in range(rows):
        target: Box = ((row, row + 1), (0, columns), (0, channels))
        steps = taken[row * (op.kernel[0] + 2) : (row + 1) * (op.kernel[0] + 2)]
        wanted: list[tuple[str, Box, Box | None]] = [("Clear", target, None)]
        for part in range(op.kernel[0]):
            y = row * op.kernel[0] + part
            wanted.append(("Compute", target, ((y, y + 1), (0, width), (0, channels))))
        wanted.append(("Finish", target, target))
        if [_signature(program, step, env, op.name) for step, env in steps] != wanted:
            raise ThimbleError(f"{op.name}: generated code pools row after row, the plan does not")
        finish = steps[-1][0]
        assert isinstance(finish, Finish)
        out = program.buffer(finish.out)
        _check_row(sums, out, row, columns, channels)
    assert out is not None
    if any(op.padding) or op.clip is not None:
        raise ThimbleError(f"{op.name}: pooling while data arrives has no padding and no clip")
    requant = shifts(op, op.requant) if isinstance(op, AveragePool2d) else PowerOfTwo()
    target_tensor = program.graph.tensors[op.output]
    source = render(
        "int4/feed_pool.c.j2",
        op=op,
        adds=op.combine == "add",
        kernel=op.kernel,
        columns=image.shape[1],
        channels=channels,
        rows=image.shape[0],
        sums=int(as_pixels(sums)[0, 0, 0]),
        sum_bits=sums.bits,
        value_bits=_value_bits(program, op, sums),
        signed=image.dtype.signed,
        view=program.tables.view(out),
        bits=target_tensor.dtype.bits,
        minimum=target_tensor.dtype.minimum,
        maximum=target_tensor.dtype.maximum,
        clips_low=_extreme(op, requant, image.dtype.minimum) < target_tensor.dtype.minimum,
        clips_high=_extreme(op, requant, image.dtype.maximum) > target_tensor.dtype.maximum,
        requant=requant,
        scattered=bool(program.tables.scatter),
    )
    rewind = ("nn_fed_rows = 0;", "nn_fed_column = 0;")
    return Feed(source, f"nn_fed_rows == {image.shape[0]}", rewind, op.name), events[count:]


def _value_bits(program: Program, op: Pool2d, sums: Buffer) -> int:
    """Width of a C integer for a sum and all that requantization makes of it; at least an int's."""
    return max(16, sums.bits, c_bits(ranges(pool2d.window(program.graph, op)), signed=True))


def _extreme(op: Pool2d, requant: PowerOfTwo, pixel: int) -> int:
    """What a window full of ``pixel`` becomes before it is clipped."""
    total = pixel * (op.kernel[0] * op.kernel[1] if op.combine == "add" else 1)
    return int(requant.apply(np.array(total)))


def _signature(
    program: Program, step: Step, env: Env, op: str
) -> tuple[str, Box, Box | None] | None:
    def box(piece: Slice) -> Box:
        return piece.box(program.buffer(piece).shape, env)

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
        if x + 1 < columns and not are_disjoint(out, done, sums, later):
            raise ThimbleError(f"{out.name}: a finished pixel would overwrite sums still in use")
