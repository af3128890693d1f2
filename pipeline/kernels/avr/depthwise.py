"""Depthwise convolutions on an AVR: each pixel that is read is multiplied with all weights of a row
of the kernel, for up to five outputs at once."""

from typing import ClassVar

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.avr.rows import AvrRows, columns_read, ends_in_24_bits
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, made, positions

MOST_ROWS, MOST_COLUMNS = 7, 3
"""Largest kernel: pointers to its rows beside the sums, a row's weights in registers."""

MOST_CHANNELS = 255
"""They are counted in one byte."""


class Depthwise(AvrRows):
    word = "depthwise"
    takes = (
        f"depthwise convolutions of up to {MOST_CHANNELS} channels, kernels of up to {MOST_ROWS} x "
        f"{MOST_COLUMNS}, that make whole rows from rows with channels last whose zero point is "
        "the least value, or without padding, and whose sums fit 24 bits"
    )
    most_pixels = 5
    by_channel = True
    costs: ClassVar[Counts] = {
        "product": 6.2, "pixel": 5.0, "row": 12.0, "output": 80.0, "channel of some pixels": 70.0,
        "call": 600.0,
    }  # fmt: skip

    def can(self, form: Form) -> bool:
        op, found = form.op, self.rows(form)
        if not isinstance(op, Conv2d) or found is None:
            return False
        source, target = found
        rows, columns = positions(form)
        plain = form.source.zero_point == form.source.dtype.minimum or not any(op.padding)
        return (
            op.groups == source.channels == target.channels <= MOST_CHANNELS
            and rows <= MOST_ROWS
            and columns <= MOST_COLUMNS
            and plain
            and all(columns_read(form, part) for part in self.parts(form))
            and ends_in_24_bits(form)
        )

    def counts(self, form: Form) -> Counts:
        outputs, (rows, columns) = made(form), positions(form)
        parts = self.parts(form)
        each = form.out.extents[0] * form.target.shape[2]
        return {
            "product": outputs * rows * columns,
            "pixel": each * rows * sum(len(columns_read(form, part)) for part in parts),
            "row": each * rows * len(parts),
            "output": outputs,
            "channel of some pixels": each * len(parts),
            "call": form.out.extents[0] * len(parts),
        }
