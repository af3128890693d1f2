"""Sums of two tensors of one shape, four elements at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.codegen.binding import form_of
from pipeline.codegen.c import window
from pipeline.codegen.c.order import Line as OrderLine
from pipeline.codegen.c.values import Value
from pipeline.codegen.c.views import View
from pipeline.codegen.cortex_m.by_row.rows import out_row
from pipeline.codegen.cortex_m.ending import element_ending
from pipeline.codegen.int8.job import Job, shape_text
from pipeline.codegen.int8.rows import row_view
from pipeline.graph.operators.add import Add
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Tensor

HALF = 1 << 30

WORDS = ("left", "right")


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


def side(tensor: Tensor, requant: FixedPoint, left_shift: int) -> Side:
    multiplier, shift = requant.multipliers[0], -requant.shifts[0]
    kind = f"{tensor.dtype}_t"
    if (multiplier, shift) == (HALF, 0):
        return Side(kind, left_shift - 1, tensor.zero_point << (left_shift - 1), 0, 0)
    zero = tensor.zero_point << (left_shift + 1)
    return Side(kind, left_shift + 1, zero, multiplier, shift)


def compute(job: Job) -> None:
    op = job.operator(Add)
    names = [(f"{word}_in", job.given(name)) for word, name in zip(WORDS, op.operands, strict=True)]
    if form_of(job).alike_blocks():
        row = job.box[0].start.const
        views, out = [row_view(job, name, piece, row) for name, piece in names], out_row(job)
    else:
        views, out = [job.view(name, piece, job.box) for name, piece in names], job.out()
    count = Value(1)
    for part in job.box:
        count = count * part.extent.const if part.extent.known else part.extent * count.const
    _call(
        job,
        "cortex_m/sum",
        (*views, out),
        {"count": count, "words": count // 4 * 4},
        rest=not (count.known and count.const % 4 == 0),
        any_words=count.high > 3,
    )


def gathered(job: Job) -> None:
    """
    Raises:
        ThimbleError: where all of a pixel has to be read before any of it is written.
    """
    op = job.operator(Add)
    if max(job.unit()) > 1:
        job.refuse_overlap()
    pairs = zip(WORDS, op.operands, strict=True)
    views = [job.view(f"{word}_in", job.given(name), job.box) for word, name in pairs]
    rows, columns, _ = job.box
    _call(
        job,
        "cortex_m/gathered_sum",
        (*views, job.out()),
        {**window.named("y", rows), **window.named("x", columns)},
        order=job.order,
        any_strides=True,
        channels=job.target.shape[2],
    )


def _call(
    job: Job,
    template: str,
    views: tuple[View, ...],
    ranges: Mapping[str, Value],
    order: Sequence[OrderLine] = (),
    any_strides: bool = False,
    **shared: Any,
) -> None:
    """``views``: of the operands and the output."""
    op, shape = job.operator(Add), shape_text(job.target.shape)
    left, right = op.operand_requants
    assert isinstance(left, FixedPoint) and isinstance(right, FixedPoint)
    pairs = zip(op.operands, (left, right), strict=True)
    sides = [side(job.tensor(name), requant, op.left_shift) for name, requant in pairs]
    job.call(
        template,
        f"{op.name}: sum of {shape} and {shape}",
        {view.name: view for view in views},
        ranges,
        job.apart,
        order=order,
        any_strides=any_strides,
        sides=dict(zip(WORDS, sides, strict=True)),
        **element_ending(job),
        **shared,
    )
