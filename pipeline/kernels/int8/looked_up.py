"""Sums of two tensors of bytes by two tables: for cores that multiply 32 bits slowly."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import clipped_to, limits
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import IntArray, Tensor
from pipeline.kernels.form import Form
from pipeline.kernels.int8.portable import Portable
from pipeline.kernels.work import made

FRACTION_BITS = 16
"""Fraction bits of a table's 32: what is stored is the upper half of a sum, clipped."""

ROUNDS = 50
NO_LIMIT = 1 << 40

ELEMENT_CYCLES = 69.0
"""Cycles of an element on an AVR, where the portable sum takes about 1,370."""


@dataclass(frozen=True)
class LookedUpAdd(Portable):
    word: str = "add"
    product_cycles: float = 0.0

    @property
    def name(self) -> str:
        return "int8.looked_up_add"

    def why_not(self, form: Form) -> str:
        if not isinstance(form.op, Add) or form.partial or tables(form.op, form.graph) is None:
            return "tables are for whole sums of two tensors of bytes that they give exactly"
        return super().why_not(form)

    def cycles(self, form: Form) -> float:
        return ELEMENT_CYCLES * made(form)


def tables(op: Add, graph: Graph) -> tuple[IntArray, IntArray] | None:
    """Return for each operand 256 numbers, from its least value on: 2 ** FRACTION_BITS times the
    result before it is clipped is the sum of one of each; None where there are none that give the
    graph's result for all 65,536 pairs."""
    operands = [graph.tensors[name] for name in op.operands]
    target = graph.tensors[op.output]
    if any(tensor.dtype.bits != 8 for tensor in (*operands, target)):
        return None
    if not all(isinstance(each, FixedPoint) for each in (*op.operand_requants, op.requant)):
        return None
    return _searched(op, *operands, target)


@lru_cache(maxsize=64)
def _searched(
    op: Add, left: Tensor, right: Tensor, target: Tensor
) -> tuple[IntArray, IntArray] | None:
    scaled = [
        requant.apply((np.arange(256) + side.dtype.minimum - side.zero_point) << op.left_shift)
        for side, requant in zip((left, right), op.operand_requants, strict=True)
    ]
    expected = clipped_to(target, op.clip, op.requant.apply(np.add.outer(*scaled)))
    assert isinstance(op.requant, FixedPoint)
    factor = 2.0 ** (FRACTION_BITS + op.requant.shifts[0] - 31) * op.requant.multipliers[0]
    half = (2 * target.zero_point + 1) << FRACTION_BITS - 1
    a, b = (np.rint(each * factor).astype(np.int64) for each in scaled)
    low, high = limits(target, op.clip)
    least = np.where(expected == low, -NO_LIMIT, expected << FRACTION_BITS)
    most = np.where(expected == high, NO_LIMIT, (expected + 1 << FRACTION_BITS) - 1)
    return _settled(a + half, b, least, most)


def _settled(
    a: IntArray, b: IntArray, least: IntArray, most: IntArray
) -> tuple[IntArray, IntArray] | None:
    """Settle numbers that are right but for rounding, near halves: each is moved into the range
    that those of the other operand leave it, in turn, until all pairs are right."""
    for _ in range(ROUNDS):
        sums = np.add.outer(a, b)
        if ((least <= sums) & (sums <= most)).all():
            return (a, b) if abs(a).max() + abs(b).max() < 1 << 31 else None
        a = _within(a, (least - b).max(axis=1), (most - b).min(axis=1))
        b = _within(b, (least - a[:, None]).max(axis=0), (most - a[:, None]).min(axis=0))
    return None


def _within(values: IntArray, least: IntArray, most: IntArray) -> IntArray:
    """Clip ``values`` to their ranges; where one is empty, take its middle."""
    return np.where(least > most, (least + most) // 2, np.clip(values, least, most))
