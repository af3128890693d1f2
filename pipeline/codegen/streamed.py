"""Input that streams in while the program runs: it goes on until it needs the next piece.

A move out of the stream says where a piece goes, and leaves the program; ``nn_feed`` puts the bytes
there as they come, and once all are there the program goes on behind the move. Where it left is a
number, and the loops around it count in static memory: no stack outlives a wait. A pool of each
value by itself, an average over 1x1, is such a move, on which every byte is shifted. Any other
average adds every byte to its window's sum.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from pipeline.codegen.c import nest, values
from pipeline.codegen.c.order import straight
from pipeline.codegen.c.values import Span, Value
from pipeline.codegen.program import Program, Take
from pipeline.codegen.render import render
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.errors import ThimbleError
from pipeline.graph.operators.pool2d import AveragePool2d
from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Affine, Buffer, Compute, Index, Move, Slice, Step

STATE = ("nn_fed == NN_INPUT_BYTES", ("nn_fed = 0;", "nn_left = 0;", "nn_place = 0;"))
"""C that says whether all has arrived, and that nothing has."""

BYTE = 2
"""Nibbles."""

MOST_CELL = 0xFFFF

MANY = 1 << 20
"""Rounds of a loop whose count does not matter."""


def waits(step: Step, program: Program) -> TypeGuard[Move | Compute]:
    """Check whether ``step`` takes input from the stream."""
    if isinstance(step, Compute) and _shift(program, step) is None and not _adds(program, step):
        return False
    if not isinstance(step, Move | Compute):
        return False
    memory = program.plan.buffer[_given(step).buffer].memory
    return program.plan.memory[memory].kind == "stream"


def counts(program: Program, step: Move | Compute) -> bool:
    """Check whether its place in the arena is linear in the loops around it."""
    target = _target(step)
    buffer = program.buffer(target)
    if isinstance(step, Compute) and _adds(program, step):
        return False
    if not isinstance(buffer.map, Affine) or not isinstance(target.copy, int):
        return False
    parts = zip(target.lo, target.size, buffer.map.rings, strict=True)
    return all(not ring or _start(lo).stays_in(ring, size) for lo, size, ring in parts)


def take(program: Program, step: Move | Compute) -> None:
    """Waits until the piece is in its place."""
    given, made = _given(step), _target(step)
    source, target = program.buffer(given), program.buffer(made)
    if isinstance(step, Compute) and _adds(program, step):
        _add(program, step)
        return
    shift = (_shift(program, step) if isinstance(step, Compute) else 0) or 0
    same_bits = isinstance(step, Compute) or source.bits == target.bits
    lows = zip(given.lo, made.lo, target.shape, strict=True)  # of one row, a loop's first is all
    moved = given.size != made.size or any(a != b for a, b, count in lows if count > 1)
    if moved or not same_bits:
        raise ThimbleError(f"a move of {source.tensor} writes other elements than it reads")
    if any(other.shift != shift for other in program.takes):
        raise ThimbleError(f"{source.tensor}: some of it is kept as it comes, and some is not")
    box = program.box(made)
    if all(part.start.known and part.stop.known for part in box):
        known = tuple((part.start.const, part.stop.const) for part in box)
        for cell, apart, count in _runs(target.addresses(known).reshape(-1), target):
            _wait(program, Take(Value(cell), apart, Value(count), target.bits, shift))
    else:
        _rows(program, target, box, shift)


def _add(program: Program, step: Compute) -> None:
    """Bytes of one row are added to sums side by side."""
    op, target = program.operators[step.op], program.buffer(step.out)
    assert isinstance(op, AveragePool2d)
    if program.buffer(step.ins[0]).bits > 8:
        raise ThimbleError(f"{op.name}: generated code adds up bytes of the input as they come")
    cells = target.addresses(step.out.box(target.shape, {})).reshape(-1)
    ((cell, apart, sums),) = _runs(cells, replace(target, bits=8))
    if sums > 1 and apart != target.nibbles:
        raise ThimbleError(f"{target.name}: generated code keeps sums of a row side by side")
    adds = op.kernel[1], target.shape[2]
    count = Value(sums * op.kernel[1])
    _wait(program, Take(Value(cell), target.nibbles, count, target.bits, adds=adds))


def _given(step: Move | Compute) -> Slice:
    return step.src if isinstance(step, Move) else step.ins[0]


def _target(step: Move | Compute) -> Slice:
    return step.dst if isinstance(step, Move) else step.out


def _shift(program: Program, step: Compute) -> int | None:
    """Shift right, each value by itself; None where that is not what the step does."""
    op = program.operators[step.op]
    if step.partial or not isinstance(op, AveragePool2d):
        return None
    return op.shift(program.graph.tensors)


def _adds(program: Program, step: Compute) -> bool:
    return step.partial and isinstance(program.operators[step.op], AveragePool2d)


def source(program: Program, types: Mapping[str, str]) -> str:
    """C of what the program remembers while it waits, and of ``nn_feed``."""
    if _by_cells(program) and any(taken.cell.high > MOST_CELL for taken in program.takes):
        raise ThimbleError(
            f"generated code puts single elements of the input into the arena's first "
            f"{(MOST_CELL + 1) // BYTE:,} bytes, the plan has places beyond"
        )
    first, image = program.takes[0], program.graph.tensors[program.graph.input]
    if _by_cells(program) or first.adds:
        program.headers.add("nn_cells.h")
    return render(
        "frame/feed_streamed.c.j2", cells=_by_cells(program), shift=first.shift, adds=first.adds,
        bits=first.bits if first.adds else min(first.bits, 8), signed=image.dtype.signed,
        most=max(taken.count.high for taken in program.takes), zero=image.zero_point,
        resting=list(program.resting.values()), **types,
    )  # fmt: skip


def _rows(program: Program, target: Buffer, box: tuple[Span, ...], shift: int) -> None:
    """Take what lies side by side as one piece; the plan's loops stay around it."""
    assert isinstance(target.map, Affine)
    first = Value(target.map.base)
    for part, stride, ring in zip(box, target.map.strides, target.map.rings, strict=True):
        if ring and not part.start.stays_in(ring, part.most):
            raise ThimbleError(
                f"{target.name}: the input would go around a ring in the middle of a piece"
            )
        first = first + (part.start % ring if ring else part.start) * stride
    loops, extents = nest.nest([part.extent for part in box], [target.map.strides])
    *outer, inner = loops.axes or (nest.Axis("i", (target.nibbles,)),)
    count = extents.get(inner.count, Value(1))
    names = []
    for axis in outer:
        name = program.names.fresh(axis.variable, "loop")
        program.resting[name] = name
        program.line(f"for ({name} = 0; {name} < {extents[axis.count]}; {name}++) {{")
        most = max(extents[axis.count].high - 1, 0)
        first = first + values.atom(name, 0, most) * axis.strides[0]
        names.append(name)
    if target.bits > 8 and inner.strides[0] != target.nibbles:
        raise ThimbleError(
            f"{target.name}: generated code takes rows of {target.bits}-bit elements in one piece"
        )
    each = target.bits // 8 or 1
    step = BYTE if target.bits > 8 else inner.strides[0]
    _wait(program, Take(first, step, count * each, target.bits, shift))
    for _ in names:
        program.line("}")


def _runs(cells: IntArray, buffer: Buffer) -> Iterator[tuple[int, int, int]]:
    """(first cell, nibbles from one to the next, how many) of the fewest pieces of equal steps."""
    if buffer.bits > 8:
        cells = (cells[:, None] + np.arange(0, buffer.nibbles, BYTE)).reshape(-1)
    for line in straight([(cell,) for cell in cells.tolist()], len(cells)):
        yield line.start[0], line.step[0] if line.number > 1 else BYTE, line.number


def _wait(program: Program, taken: Take) -> None:
    program.takes.append(taken)
    number = len(program.takes)

    def said() -> Call:
        values = [taken.cell // BYTE, taken.count]
        if _by_cells(program):
            values = [taken.cell, Value(taken.step), taken.count]
        return Call("NN_TAKE", tuple(Argument(PLACE, v) for v in values), resumes=number)

    program.line(said)


def _by_cells(program: Program) -> bool:
    """Check whether some piece is more than bytes side by side, or than sums of them."""
    return not program.takes[0].adds and any(
        taken.bits < 8 or taken.shift or taken.step != BYTE for taken in program.takes
    )


def _start(lo: Index) -> Value:
    names = [] if isinstance(lo, int) else [name for name, _ in lo.coef]
    return values.of(lo, {name: (name, MANY) for name in names})
