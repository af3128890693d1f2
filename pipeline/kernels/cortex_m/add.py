"""Sums of two tensors of one shape, four elements at a time."""

from __future__ import annotations

from pipeline.graph.operators.add import Add
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Tensor
from pipeline.kernels.cortex_m.fast import Fast
from pipeline.kernels.cortex_m.gathered import anywhere
from pipeline.kernels.cortex_m.quick import REACH, element_end
from pipeline.kernels.form import Form
from pipeline.kernels.gap import Gap
from pipeline.kernels.work import Counts, made


class Sum(Fast):
    """Whether apart or over an operand: a word is read before it is written, in ascending order."""

    word = "sum"
    takes = "sums of two tensors of one shape, or of rows of theirs, in one piece each"

    def can(self, form: Form) -> bool:
        return adds(form) and (
            (form.covers(form.op.output) and all(map(form.in_one_piece, form.parts)))
            or all(map(form.whole_rows, form.parts))
            or form.alike_blocks()
        )

    def each_row(self, form: Form) -> bool:
        """Where they do not follow each other."""
        whole = form.covers(form.op.output) and all(map(form.in_one_piece, form.parts))
        return not whole and not all(map(form.follow, form.parts))

    def unit(self, form: Form) -> tuple[int, ...]:
        """Words in the order in which they lie: of blocks, in effect, a row."""
        blocks = form.out.pixels > 0
        return (1, *form.out.extents[1:]) if blocks else super().unit(form)

    def overlap(self, form: Form, tensor: str) -> Gap | None:
        return Gap(0) if super().overlap(form, tensor) else None

    def counts(self, form: Form) -> Counts:
        return {"output": made(form), "call": 1}


class GatheredSum(Sum):
    """Of pixels that lie anywhere, one after the other, channels by words; those of a pixel
    may lie anywhere, too."""

    word = "gathered_sum"
    takes = "sums of two images of one shape, all channels of pixels that lie anywhere"

    def can(self, form: Form) -> bool:
        return adds(form) and len(form.target.shape) == 3 and anywhere(form)

    def each_row(self, form: Form) -> bool:
        return False

    def counts(self, form: Form) -> Counts:
        rows, columns, channels = form.out.extents
        pixels = rows * columns
        return {
            "call": 1,
            "word": pixels * (channels // 4),
            "element left over": pixels * (channels % 4),
            "pixel": pixels,
        }


def adds(form: Form) -> bool:
    """Whether it is a sum of two tensors of one shape that ends quickly, wherever they lie."""
    op, tensors = form.op, form.graph.tensors
    return (
        isinstance(op, Add)
        and not form.partial
        and len(set(op.inputs)) == 2
        and op.operands == op.inputs
        and all(tensors[name].shape == form.target.shape for name in op.inputs)
        and all(
            has_side(tensors[name], requant, op.left_shift)
            for name, requant in zip(op.operands, op.operand_requants, strict=True)
        )
        and element_end(op, form.graph) is not None
    )


def has_side(tensor: Tensor, requant: object, left_shift: int) -> bool:
    """Whether an operand is brought to the scale of both within 32 bits."""
    if not isinstance(requant, FixedPoint) or len(requant.multipliers) > 1:
        return False
    multiplier, shift = requant.multipliers[0], -requant.shifts[0]
    reach = max(tensor.dtype.maximum - tensor.zero_point, tensor.zero_point - tensor.dtype.minimum)
    if not 0 <= shift <= 30 or left_shift < 1 or multiplier == 0:
        return False
    return (reach << (left_shift + 1)) + (1 << shift) < REACH
