"""A sum of two tensors of 4 bits: what each pair of stored values gives is in a table in flash."""

from __future__ import annotations

from functools import partial

import numpy as np

from pipeline.codegen.c.values import Value
from pipeline.codegen.constants import stored
from pipeline.codegen.int4.lines import are_disjoint, pixels
from pipeline.codegen.int4.stretches import Stretch, stretches
from pipeline.codegen.int4.views import as_pixels
from pipeline.codegen.program import Program
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.graph.operator import Tensors, clipped_to
from pipeline.graph.operators.add import Add
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.plan.vocabulary import Compute, Slice

STORED = np.arange(16)


def emit(program: Program, op: Add, step: Compute) -> None:
    """Of a row or of all; no loop is around it. A call for each stretch that lies in one piece."""
    pieces = {program.buffer(piece).tensor: piece for piece in step.ins}
    at = stored(program.windows.sums, table(op, program.graph.tensors))
    for numbers in _stretches(program, [*(pieces[name] for name in op.operands), step.out], step):
        places = (Argument(PLACE, Value(number)) for number in numbers)
        arguments = (Argument(f"&nn_sums4[{PLACE}]", Value(at)), *places)
        program.run(op.name, partial(Call, "nn_sum4", arguments))


def _stretches(program: Program, pieces: list[Slice], step: Compute) -> list[Stretch]:
    buffers = [program.buffer(piece) for piece in pieces]
    box = step.out.box(buffers[-1].shape, {})
    places = zip(buffers, pieces, strict=True)
    whole = [buffer.run(piece.box(buffer.shape, {})) for buffer, piece in places]
    firsts = tuple(first for first in whole if first is not None)
    if len(firsts) == len(whole):
        return [(*firsts, int(np.prod([stop - start for start, stop in box])))]
    apart = all(are_disjoint(buffers[-1], box, buffer, box) for buffer in buffers[:-1])
    elements = [as_pixels(buffer) for buffer in buffers]
    order = pixels(step, box, apart)
    return stretches(step.op, (np.stack([each[at] for each in elements]) for at in order))


def table(op: Add, tensors: Tensors) -> list[int]:
    """Of pairs (a, b) of stored values the sum as it is stored, two in a byte: 16 a + b is the
    number of a nibble."""
    grids = np.meshgrid(_values(tensors[op.operands[0]]), _values(tensors[op.operands[1]]),
                        indexing="ij")  # fmt: skip
    shifted = (grid << op.left_shift for grid in grids)
    parts = [r.apply(x) for r, x in zip(op.operand_requants, shifted, strict=True)]
    made = clipped_to(tensors[op.output], op.clip, op.requant.apply(parts[0] + parts[1])) & 15
    nibbles = made.reshape(-1, 2)
    return [int(low | high << 4) for low, high in nibbles]


def _values(tensor: Tensor) -> IntArray:
    """What each of 16 nibbles stands for, in steps of the tensor's scale."""
    signed = np.where(STORED > 7, STORED - 16, STORED) if tensor.dtype.signed else STORED
    return np.asarray(signed - tensor.zero_point, dtype=np.int64)
