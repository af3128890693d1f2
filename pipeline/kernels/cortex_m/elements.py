"""Functions of two operands, four elements at a time, wherever these lie: tensors of one shape, or
one of them a vector that has an element for each channel."""

from pipeline.graph.families import Pairwise, Scaled
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Tensor
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.form import Form
from pipeline.kernels.int8.costs import word
from pipeline.kernels.quick import REACH, element_end, endings_of
from pipeline.kernels.safe_offset import SafeOffset
from pipeline.kernels.work import Counts, made

LEAST = 4
"""Elements of a word."""


class Elements(Fitted):
    """Element-wise kernel, apart or over an operand: reads a word before writing it, in the order
    in which they lie."""

    word = "elements"
    takes = (
        f"functions of two tensors of one shape, or of one and a vector of its channels, {LEAST} "
        "elements or more, some of them side by side, or rows in blocks alike"
    )

    def can(self, form: Form) -> bool:
        names = images(form)
        beside = all(run(form, name) > 1 for name in names) or form.alike_blocks()
        return bool(names) and made(form) >= LEAST and beside

    def unit(self, form: Form) -> tuple[int, ...]:
        """Return what is, in effect, a row in blocks."""
        return form.out.extents if form.out.pixels else super().unit(form)

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        return SafeOffset(0) if tensor in images(form) and super().overlap(form, tensor) else None

    def counts(self, form: Form) -> Counts:
        assert isinstance(form.op, Pairwise)
        named, runs = word(form.op), self.runs(form)
        alike = "add" if isinstance(form.op, Scaled) else "multiply"
        kinds = (f"{named} by one" * self.by_one(form), named, alike)
        kind = next(each for each in kinds if f"word, {each}" in self.prices())
        number = sum(number for number, _ in runs)
        return {
            f"word, {kind}": sum(number * (length // 4) for number, length in runs),
            f"element left over, {kind}": sum(number * (length % 4) for number, length in runs),
            "run": number,
            **endings_of(element_end(form.op, form.graph), made(form)),
        }

    def by_one(self, form: Form) -> bool:
        """Check whether neighbours in a block share what a vector has for their channel."""
        return bool(form.out.pixels and vector(form))

    def runs(self, form: Form) -> tuple[tuple[int, int], ...]:
        """Return pairs of a number of loops, and the number of elements that each goes along."""
        channels = form.out.extents[-1]
        if self.by_one(form):
            blocks, rest = divmod(form.out.extents[1], form.out.pixels)
            return (blocks * channels, form.out.pixels), (channels * (rest > 0), rest)
        if form.out.pixels:
            return ((1, made(form)),)
        length = min(run(form, name) for name in images(form))
        length = min(length, channels) if vector(form) else length
        return ((made(form) // length, length),)


def run(form: Form, tensor: str) -> int:
    """Count the elements that lie side by side: by a table those of a pixel, unless scattered."""
    part, length = form.parts[tensor], 1
    if part.spread == "table":
        pixels = len(part.extents) == 3 and form.covers(tensor, slice(2, 3))
        return part.extents[2] if pixels else 0
    axes = (part.extents, part.around, part.strides)
    for extent, around, stride in zip(*map(reversed, axes), strict=False):
        if extent > 1 and (around or stride != length * part.bits // 4):
            break
        length *= extent
    return length


def images(form: Form) -> tuple[str, ...]:
    """Return the output, and the operands of its shape, of a function that there is code for,
    wherever they lie; none if there isn't."""
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
            return name if beside and name not in form.overlaps else ""
    return ""


def scales(form: Form) -> bool:
    """Check whether 32 bits are enough to bring operands to one scale, if they aren't."""
    op, tensors = form.op, form.graph.tensors
    return not isinstance(op, Scaled) or all(
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
