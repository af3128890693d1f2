"""Convolutions of one group: windows of up to four pixels are widened to words, pixel beside pixel,
so that each weight that is unpacked is multiplied with all of them. They are written once that is
done, so that they may lie over what has been read for good."""

from typing import ClassVar

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.fast import in_rows
from pipeline.kernels.form import Form
from pipeline.kernels.safe_offset import SafeOffset, pixel_offset
from pipeline.kernels.thumb.ending import SUMS, ThumbKernel, ends, stepped
from pipeline.kernels.widened import Widened, cheapest, evenly_spaced, row_by_row
from pipeline.kernels.work import Counts


class Convolution(ThumbKernel, Widened):
    word = "conv2d"
    follows = False
    takes = (
        "convolutions of one group, all channels of rows in one piece, whose sums end by products "
        "of 32 bits"
    )
    costs: ClassVar[Counts] = {
        "product": 2.99, "weight": 3.38, "output": 7.93, "step": 5.81,
        "channel of some pixels": 30.1, "element": 7.05, "row of a window": 36.2,
    }  # fmt: skip

    def can(self, form: Form) -> bool:
        op = form.op
        return (
            isinstance(op, Conv2d)
            and op.groups == 1
            and in_rows(form)
            and (not form.overlaps or self.overlap(form, op.inputs[0]) is not None)
            and form.in_packed_rows(op.inputs[0])
            and self.window(form).size > 0
            and ends(form)
        )

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        safe = pixel_offset(form, tensor)
        return safe and SafeOffset(safe.forwards)

    def counts(self, form: Form) -> Counts:
        window, together, channels = self.window(form), self.together(form), form.out.extents[2]
        blocks, elements = self.table_passes(form), window.size
        outputs = blocks * together * channels
        return {
            "product": outputs * elements,
            "weight": blocks * channels * elements,
            "output": outputs,
            "step": outputs * stepped(form),
            "channel of some pixels": blocks * channels,
            "element": blocks * together * elements,
            "row of a window": blocks * together * window.number,
        }

    def together(self, form: Form) -> int:
        return cheapest(evenly_spaced(form), SUMS, instructions)

    def tail(self, form: Form) -> int:
        """Take as much as the others: windows of pixels that are made twice are kept."""
        return self.together(form)

    def each_row(self, form: Form) -> bool:
        return row_by_row(form)

    def scratch_bytes(self, form: Form) -> int:
        """Return the windows of some pixels, a word an element."""
        return self.together(form) * self.window(form).size * 4


def instructions(pixels: int) -> float:
    """Count those for a weight and so many pixels."""
    return 2.75 + 2 * pixels
