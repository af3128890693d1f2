"""Functions of two operands, four elements at a time, wherever these lie: tensors of one shape, or
one of them a vector that has an element for each channel."""

from __future__ import annotations

from pipeline.graph.families import Pairwise
from pipeline.graph.operators.add import Add
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Tensor
from pipeline.kernels.cortex_m.fast import Fast
from pipeline.kernels.cortex_m.gathered import whole_pixels
from pipeline.kernels.cortex_m.quick import REACH, element_end, endings_of
from pipeline.kernels.form import Form
from pipeline.kernels.gap import Gap
from pipeline.kernels.int8.costs import word
from pipeline.kernels.work import Counts, made

Runs = tuple[tuple[int, int], ...]
"""Pairs: a number of loops, and the number of elements that each goes along."""


class Elements(Fast):
    """Element-wise kernel, apart or over an operand: reads a word before writing it, ascending."""

    word = "elements"
    takes = (
        "functions of two tensors of one shape, or of one and a vector of its channels, that lie "
        "in one piece each, or rows of which do"
    )

    def can(self, form: Form) -> bool:
        names = images(form)
        return bool(names) and (in_pieces(form, names) or all(map(form.whole_rows, names)))

    def each_row(self, form: Form) -> bool:
        """Check whether images neither lie in one piece nor have rows that follow each other."""
        names = images(form)
        return not in_pieces(form, names) and not all(map(form.follow, names))

    def overlap(self, form: Form, tensor: str) -> Gap | None:
        return Gap(0) if tensor in images(form) and super().overlap(form, tensor) else None

    def counts(self, form: Form) -> Counts:
        assert isinstance(form.op, Pairwise)
        kind, runs = word(form.op), self.runs(form)
        kind = kind if f"word, {kind}" in self.prices() else "multiply"  # of one that wasn't timed
        return {
            f"word, {kind}": sum(number * (length // 4) for number, length in runs),
            f"element left over, {kind}": sum(number * (length % 4) for number, length in runs),
            f"run, {kind}": sum(number for number, _ in runs),
            **endings_of(element_end(form.op, form.graph), made(form)),
        }

    def runs(self, form: Form) -> Runs:
        channels = form.out.extents[-1] if vector(form) else made(form)
        return ((made(form) // channels, channels),)


class RowElements(Elements):
    """Kernel for a row in blocks, words in the order in which they lie; neighbours share what a
    vector has for their channel."""

    word = "row_elements"
    takes = "functions of two rows in blocks, or of one and a vector of its channels"

    def can(self, form: Form) -> bool:
        return bool(images(form)) and form.alike_blocks()

    def each_row(self, form: Form) -> bool:
        return False

    def unit(self, form: Form) -> tuple[int, ...]:
        """In effect, the row."""
        return form.out.extents

    def runs(self, form: Form) -> Runs:
        if not vector(form):
            return super().runs(form)
        _, columns, channels = form.out.extents
        blocks, rest = divmod(columns, form.out.pixels)
        return (blocks * channels, form.out.pixels), (channels * (rest > 0), rest)


class GatheredElements(Elements):
    """Kernel for pixels that lie anywhere, such as a tile's, one after the other; channels of a
    pixel may do so, too."""

    word = "gathered_elements"
    takes = (
        "functions of two images, or of one and a vector of its channels, all channels of pixels "
        "that lie anywhere"
    )

    def can(self, form: Form) -> bool:
        image = bool(images(form)) and len(form.target.shape) == 3
        return image and whole_pixels(form) and not super().can(form)

    def each_row(self, form: Form) -> bool:
        return False

    def counts(self, form: Form) -> Counts:
        """Leave out what ends a value: that is a small part of what its place takes."""
        found = super().counts(form)
        return {word: n for word, n in found.items() if word not in ("clip", "shift")}

    def runs(self, form: Form) -> Runs:
        channels = form.out.extents[-1]
        return ((made(form) // channels, channels),)


def in_pieces(form: Form, names: tuple[str, ...]) -> bool:
    """Check whether all of the output is computed, and each of ``names`` lies in one piece."""
    return form.covers(form.op.output) and all(map(form.in_one_piece, names))


def images(form: Form) -> tuple[str, ...]:
    """The output, and the operands of its shape, of a function that there is code for, wherever
    they lie; none if there isn't."""
    op, tensors, shape = form.op, form.graph.tensors, form.target.shape
    if not isinstance(op, Pairwise) or form.partial or set(op.operands) != {*op.inputs}:
        return ()
    names = tuple(name for name in op.inputs if tensors[name].shape == shape)
    able = len(op.inputs) == 2 and names and (len(names) == 2 or vector(form)) and scales(form)
    return (op.output, *names) if able else ()


def vector(form: Form) -> str:
    """The operand that has an element for each channel, side by side, and stays; "": none is."""
    tensors, channels = form.graph.tensors, form.target.shape[-1]
    for name in form.op.inputs:
        tensor = tensors[name]
        if tensor.shape != form.target.shape and tensor.size == channels == tensor.shape[-1]:
            beside = form.in_one_piece(name) or form.whole_rows(name)
            return name if beside and form.covers(name) and name not in form.overlaps else ""
    return ""


def scales(form: Form) -> bool:
    """Check whether 32 bits are enough to bring operands to one scale, if they aren't."""
    op, tensors = form.op, form.graph.tensors
    return not isinstance(op, Add) or all(
        has_side(tensors[name], requant, op.left_shift)
        for name, requant in zip(op.operands, op.operand_requants, strict=True)
    )


def has_side(tensor: Tensor, requant: object, left_shift: int) -> bool:
    """Check whether an operand is brought to the scale of both within 32 bits."""
    if not isinstance(requant, FixedPoint) or len(requant.multipliers) > 1:
        return False
    multiplier, shift = requant.multipliers[0], -requant.shifts[0]
    reach = max(tensor.dtype.maximum - tensor.zero_point, tensor.zero_point - tensor.dtype.minimum)
    if not 0 <= shift <= 30 or left_shift < 1 or multiplier == 0:
        return False
    return (reach << (left_shift + 1)) + (1 << shift) < REACH
