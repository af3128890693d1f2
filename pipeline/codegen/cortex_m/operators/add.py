"""Sums of two tensors of one shape, four elements at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.codegen.cortex_m import step
from pipeline.codegen.cortex_m.ending import REACH, quick
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.values import whole
from pipeline.graph.operators.add import Add
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Tensor

HALF = 1 << 30


@dataclass(frozen=True)
class Side:
    """An operand on its way to the scale of both: x * 2**left_shift - zero is twice what TFLite
    multiplies; where it multiplies by a half, what that gives, and ``multiplier`` is 0.

    Attributes:
        type: C's, of an element.
        shift: right, after the multiplication.
    """

    type: str
    left_shift: int
    zero: int
    multiplier: int
    shift: int

    @property
    def factor(self) -> int:
        return 1 << self.left_shift

    def scaled(self, name: str) -> str:
        if self.multiplier == 0:
            return name
        if self.shift == 0:
            return f"nn_add_product((uint32_t){name}, {self.multiplier}, 0)"
        half = 1 << (self.shift - 1)
        return f"nn_requantized({name}, {self.multiplier}, {half}, {self.shift}, {name})"


def side(tensor: Tensor, requant: object, left_shift: int) -> Side | None:
    if not isinstance(requant, FixedPoint) or len(requant.multipliers) > 1:
        return None
    multiplier, shift = requant.multipliers[0], -requant.shifts[0]
    reach = max(tensor.dtype.maximum - tensor.zero_point, tensor.zero_point - tensor.dtype.minimum)
    if tensor.dtype.bits != 8 or not 0 <= shift <= 30 or left_shift < 1 or multiplier == 0:
        return None
    if (reach << (left_shift + 1)) + (1 << shift) >= REACH:
        return None
    kind = f"{tensor.dtype}_t"
    if (multiplier, shift) == (HALF, 0):
        return Side(kind, left_shift - 1, tensor.zero_point << (left_shift - 1), 0, 0)
    zero = tensor.zero_point << (left_shift + 1)
    return Side(kind, left_shift + 1, zero, multiplier, shift)


def compute(job: Job) -> bool:
    op = job.op
    assert isinstance(op, Add)
    if job.partial or len(set(op.inputs)) != 2 or op.operands != op.inputs:
        return False
    if not step.covers(job):  # of a pass over channels there may be rings
        return False
    tensors = [job.tensor(name) for name in op.operands]
    if any(tensor.shape != job.target.shape for tensor in tensors):
        return False
    views = [job.view(f"{side_}_in", job.given(name), [whole(n) for n in job.target.shape])
             for side_, name in zip(("left", "right"), op.operands, strict=True)]  # fmt: skip
    in_order = job.apart or job.in_place
    if not (in_order and all(map(step.in_one_piece, (*views, job.out())))):
        return False
    pairs = zip(tensors, op.operand_requants, strict=True)
    sides = [side(tensor, requant, op.left_shift) for tensor, requant in pairs]
    graph = job.program.graph
    sums = np.array([op.partial_sums(graph.tensors, graph.constants)])
    end = quick(job.target, op.clip, op.requant, sums)
    if end is None or None in sides:
        return False
    multiplier, offset, shift = end.constants[0].tolist()
    shape = shape_text(job.target.shape)
    job.program.call(
        op.name,
        "cortex_m/sum",
        f"{op.name}: sum of {shape} and {shape}",
        {"left_in": views[0], "right_in": views[1], "out": job.out()},
        {},
        job.apart,
        count=job.target.size,
        sides=dict(zip(("left", "right"), sides, strict=True)),
        multiplier=multiplier,
        end_offset=offset,
        shift=shift,
        end=end,
    )
    return True
