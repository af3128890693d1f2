"""A sum of two tensors of 4 bits: what each pair of stored values gives is in a table in flash."""

from __future__ import annotations

import numpy as np

from pipeline.codegen.int8.values import Value
from pipeline.codegen.program import Program
from pipeline.codegen.statements import PLACE, Argument, Call
from pipeline.errors import ThimbleError
from pipeline.graph.operator import Tensors, clipped_to
from pipeline.graph.operators.add import Add
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.plan.vocabulary import Compute, Slice

STORED = np.arange(16)


def emit(program: Program, op: Add, step: Compute) -> None:
    """Of a row or of all; no loop is around it."""
    pieces = {program.buffer(piece).tensor: piece for piece in step.ins}
    first, second = (_first(program, pieces[name]) for name in op.operands)
    at = program.windows.add_sums(table(op, program.graph.tensors))
    out = program.buffer(step.out)
    count = int(np.prod([stop - start for start, stop in step.out.box(out.shape, {})]))
    numbers = (first, second, _first(program, step.out), count)
    arguments = (Argument(PLACE, Value(number)) for number in numbers)
    call = Call("nn_sum", (Argument(f"&nn_sums[{PLACE}]", Value(at)), *arguments))
    program.run(op.name, lambda: call)


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


def _first(program: Program, piece: Slice) -> int:
    buffer = program.buffer(piece)
    found = buffer.run(piece.box(buffer.shape, {}))
    if found is None:
        raise ThimbleError(f"{buffer.name}: generated code adds up what lies in one piece")
    return found
