"""What is known of each."""

from __future__ import annotations

from pipeline import scratch
from pipeline.graph.operator import Operator
from pipeline.graph.operators import dense
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.form import Form
from pipeline.kernels.int8 import share
from pipeline.kernels.kernel import Kernel


class Fast(Kernel):
    """A step that is apart from its inputs, in elements of 8 bits."""

    word = ""
    product_cycles = 1.0

    @property
    def name(self) -> str:
        return f"cortex_m.{self.word}"

    def why_not(self, form: Form) -> str:
        if form.overlaps or form.source.dtype.bits != 8 or form.target.dtype.bits != 8:
            return "fast kernels compute elements of 8 bits apart from their inputs"
        if not all(part.straight for part in form.parts.values()):
            return "fast kernels have no rings or tables"
        return "" if self.can(form.op, form) else f"{self.word} is for other operators, or forms"

    def can(self, op: Operator, form: Form) -> bool:
        raise NotImplementedError

    def cycles(self, form: Form) -> float:
        return self.product_cycles * share(form)


def all_pixels(form: Form) -> bool:
    """All of the output but for channels, of which each pass has equally many."""
    name = form.op.output
    sides = slice(0, 2)
    return (
        not form.partial
        and len(form.out.extents) == 3
        and form.covers(name, sides)
        and form.out.multiples[2]
        and form.out.evenly_spaced
    )


class Convolution(Fast):
    """Windows of some pixels are widened once, for all channels."""

    word = "conv2d"

    def can(self, op: Operator, form: Form) -> bool:
        return (
            isinstance(op, Conv2d)
            and scratch.is_plain(op, form.graph.tensors)
            and not scratch.is_depthwise(op, form.graph.tensors)
            and all_pixels(form)
            and form.out.extents[2] > 1
            and form.part(op.inputs[0]).in_one_piece
        )

    def scratch_bytes(self, form: Form) -> int:
        assert isinstance(form.op, Conv2d)
        return scratch.convolution_bytes(form.op, form.graph.tensors)


class Depthwise(Fast):
    """Rows of some channels are taken apart, so that neighbours are pairs."""

    word = "depthwise"

    def can(self, op: Operator, form: Form) -> bool:
        return (
            isinstance(op, Conv2d)
            and scratch.is_depthwise(op, form.graph.tensors)
            and all_pixels(form)
            and form.part(op.inputs[0]).evenly_spaced
        )

    def scratch_bytes(self, form: Form) -> int:
        assert isinstance(form.op, Conv2d)
        lanes = scratch.lanes(form.out.extents[2])
        return scratch.depthwise_bytes(form.op, form.graph.tensors, lanes)


class Dense(Fast):
    """The input is widened once, for all output channels."""

    word = "dense"

    def can(self, op: Operator, form: Form) -> bool:
        return (
            isinstance(op, dense.Dense)
            and not form.partial
            and form.covers(op.output)
            and form.target.size > 1
            and form.out.in_one_piece
            and form.part(op.inputs[0]).in_one_piece
        )

    def scratch_bytes(self, form: Form) -> int:
        assert isinstance(form.op, dense.Dense)
        return scratch.dense_bytes(form.op, form.graph.tensors)


class Single(Fast):
    """One output channel of a convolution at a time."""

    word = "single"

    def can(self, op: Operator, form: Form) -> bool:
        return (
            isinstance(op, Conv2d)
            and op.groups == 1
            and all_pixels(form)
            and form.out.extents[2] == 1
            and form.part(op.inputs[0]).in_one_piece
        )

    def scratch_bytes(self, form: Form) -> int:
        assert isinstance(form.op, Conv2d)
        return scratch.single_bytes(form.op, form.graph.tensors)


class Accumulate(Fast):
    """Some input channels of a convolution are added to accumulators."""

    word = "accumulate"

    def can(self, op: Operator, form: Form) -> bool:
        name = op.inputs[0]
        return (
            form.partial
            and isinstance(op, Conv2d)
            and op.groups == 1
            and form.target.shape[2] > 1
            and form.covers(op.output)
            and form.covers(name, slice(0, 2))
            and form.even(name, 2)
            and form.out.evenly_spaced
            and form.part(name).evenly_spaced
        )

    def scratch_bytes(self, form: Form) -> int:
        assert isinstance(form.op, Conv2d)
        channels = form.part(form.op.inputs[0]).extents[2]
        return scratch.added_bytes(form.op, form.graph.tensors, channels, form.out.bits)
