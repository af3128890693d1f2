"""Products of an image and one factor a channel, as squeeze-and-excite has them."""

from __future__ import annotations

from pipeline.graph.operators.multiply import Multiply
from pipeline.kernels.cortex_m.fast import Fast
from pipeline.kernels.cortex_m.quick import element_end, endings_of
from pipeline.kernels.form import Form
from pipeline.kernels.gap import Gap
from pipeline.kernels.work import Counts, made


class Gate(Fast):
    """Whether apart or over the image: a word is read before it is written, in ascending order."""

    word = "gate"
    takes = "products of an image and one factor a channel, of rows that lie in one piece each"

    def can(self, form: Form) -> bool:
        names = sides(form)
        return names is not None and all(map(form.whole_rows, (names[0], form.op.output)))

    def each_row(self, form: Form) -> bool:
        """Where they do not follow each other."""
        names = sides(form)
        return names is not None and not all(map(form.follow, (names[0], form.op.output)))

    def overlap(self, form: Form, tensor: str) -> Gap | None:
        names = sides(form)
        return Gap(0) if names and tensor == names[0] and super().overlap(form, tensor) else None

    def counts(self, form: Form) -> Counts:
        rows, columns, channels = form.out.extents
        pixels = rows * columns
        return {
            "word": pixels * (channels // 4),
            "element left over": pixels * (channels % 4),
            "pixel": pixels,
            "call": 1,
            **endings(form),
        }


class RowGate(Gate):
    """Of a row in blocks: neighbours share a factor."""

    word = "row_gate"
    takes = "products of a row in blocks and one factor a channel"

    def can(self, form: Form) -> bool:
        return sides(form) is not None and form.alike_blocks()

    def each_row(self, form: Form) -> bool:
        return False

    def unit(self, form: Form) -> tuple[int, ...]:
        """Words in the order in which they lie: in effect, a row."""
        return form.out.extents

    def counts(self, form: Form) -> Counts:
        _, columns, channels = form.out.extents
        blocks, rest = divmod(columns, form.out.pixels)
        widths = [form.out.pixels] * blocks + [rest] * (rest > 0)
        return {
            "word": channels * sum(width // 4 for width in widths),
            "element left over": channels * sum(width % 4 for width in widths),
            "channel": channels * len(widths),
            "call": 1,
            **endings(form),
        }


def sides(form: Form) -> tuple[str, str] | None:
    """The image, and the factors, of a product of such that ends quickly, wherever they lie."""
    op, tensors = form.op, form.graph.tensors
    if not isinstance(op, Multiply) or form.partial or len(set(op.inputs)) != 2:
        return None
    shape = form.target.shape
    for image, factors in (op.operands, op.operands[::-1]):
        one_a_channel = tensors[factors].size == shape[-1] == tensors[factors].shape[-1]
        if tensors[image].shape == shape and one_a_channel and factors not in form.overlaps:
            beside = form.in_one_piece(factors) or form.whole_rows(factors)
            able = beside and form.covers(factors) and element_end(op, form.graph)
            return (image, factors) if able else None
    return None


def endings(form: Form) -> Counts:
    assert isinstance(form.op, Multiply)
    return endings_of(element_end(form.op, form.graph), made(form))
