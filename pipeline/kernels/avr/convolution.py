"""Convolutions of one group on an AVR: windows are copied pixel beside pixel, then each weight that
is read is multiplied with all of them. A dense layer is one of one pixel."""

from typing import ClassVar

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.avr.rows import AvrKernel, AvrRows, ends_in_24_bits
from pipeline.kernels.fast import FastDense
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, made, positions

UNROLL = 4
"""Elements of a window in the code of the innermost loop."""

MOST_ELEMENTS = 255 * UNROLL
"""Most elements of a window: its loop counts in one byte."""

SUM_BYTES = 6
"""Scratch bytes of a pixel beside its window: its sum, and what is taken from all of its sums."""


class Convolution(AvrRows):
    word = "conv2d"
    takes = (
        f"convolutions of one group, windows of up to {MOST_ELEMENTS} elements, that make whole "
        "rows from rows with channels last, and whose sums fit 24 bits"
    )
    most_pixels = 6
    costs: ClassVar[Counts] = {
        "product": 6.9, "weight": 4.0, "output": 92.0, "channel of some pixels": 60.0,
        "element": 22.0, "run": 150.0, "call": 400.0,
    }  # fmt: skip

    def can(self, form: Form) -> bool:
        op = form.op
        return (
            isinstance(op, Conv2d)
            and op.groups == 1
            and self.rows(form) is not None
            and elements(form) <= MOST_ELEMENTS
            and ends_in_24_bits(form)
        )

    def counts(self, form: Form) -> Counts:
        outputs, window = made(form), elements(form)
        rows, parts = form.out.extents[0], len(self.parts(form))
        _, columns, channels = form.target.shape
        return {
            "product": outputs * window,
            "weight": rows * parts * channels * window,
            "output": outputs,
            "channel of some pixels": rows * parts * channels,
            "element": rows * columns * window,
            "run": rows * columns * positions(form)[0],
            "call": rows * parts,
        }

    def scratch_bytes(self, form: Form) -> int:
        """Return the windows of some pixels, what is taken from their sums, and the sums."""
        return (elements(form) + SUM_BYTES) * max(map(len, self.parts(form)))


def elements(form: Form) -> int:
    """Count the elements of a window."""
    rows, columns = positions(form)
    return rows * columns * form.source.shape[2]


class DenseLayer(FastDense, AvrKernel):
    takes = (
        f"dense layers of up to {MOST_ELEMENTS} inputs, all at once, of an input in one piece, and "
        "whose sums fit 24 bits"
    )
    costs: ClassVar[Counts] = {"product": 11.2, "output": 150.0, "input": 20.0, "call": 400.0}

    def can(self, form: Form) -> bool:
        small = super().can(form) and form.source.size <= MOST_ELEMENTS
        return small and ends_in_24_bits(form)

    def counts(self, form: Form) -> Counts:
        inputs, outputs = form.source.size, form.target.size
        return {"product": inputs * outputs, "output": outputs, "input": inputs, "call": 1}

    def scratch_bytes(self, form: Form) -> int:
        return form.source.size + SUM_BYTES
