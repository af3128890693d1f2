"""Depthwise convolutions, channel by channel: some rows of a channel are widened to words, column
beside column, so that neighbouring outputs have each weight in common. All that a row's channel is
made of is read before it is written, so that a row may lie over one that it is made of."""

from math import ceil
from typing import ClassVar, NamedTuple

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.fast import convolution, in_rows
from pipeline.kernels.form import Form
from pipeline.kernels.safe_offset import SafeOffset, channel_offset
from pipeline.kernels.thumb.ending import SUMS, ThumbKernel, ends, stepped
from pipeline.kernels.work import Counts

MOST_TAPS = 24
"""Most taps of a kernel: its weights, and what ends their sums, are in reach of one pointer."""

MOST_WORDS = 1024
"""Most words of a channel's rows that are widened together, where the kernel's fit that."""

LEAST_CHANNELS = 2


class Strip(NamedTuple):
    """Rows of a channel, as they are widened.

    Attributes:
        rows: of the output that are made of them; ``given``: of them.
        phases: columns whose numbers are alike modulo the stride lie together.
        columns: of a phase.
    """

    rows: int
    given: int
    phases: int
    columns: int

    @property
    def pitch(self) -> int:
        """Words of a row."""
        return self.phases * self.columns

    @property
    def words(self) -> int:
        return self.given * self.pitch


class Depthwise(ThumbKernel):
    word = "depthwise"
    takes = (
        f"depthwise convolutions, kernels of up to {MOST_TAPS} weights, not dilated, all channels, "
        "whose sums end by products of 32 bits"
    )
    costs: ClassVar[Counts] = {
        "product": 4.02, "output": 21.6, "row of a channel": 75.0, "element": 6.28,
        "given row": 4.04, "channel": 186.0,
    }  # fmt: skip

    def can(self, form: Form) -> bool:
        op, tensors = form.op, form.graph.tensors
        if not isinstance(op, Conv2d) or not in_rows(form):
            return False
        _, rows, columns, _ = tensors[op.parameters[0]].shape
        channels = form.target.shape[2]
        return (
            op.groups == channels == form.source.shape[2] >= LEAST_CHANNELS
            and op.dilation == (1, 1)
            and rows * columns <= MOST_TAPS
            and (not form.overlaps or self.overlap(form, op.inputs[0]) is not None)
            and form.in_rows(op.inputs[0])
            and form.given.extents[2] == channels
            and ends(form)
        )

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        safe = channel_offset(form, tensor)
        return safe and safe._replace(aside_bytes=0)

    def unit(self, form: Form) -> tuple[int, ...]:
        return (*form.out.extents[:2], 1) if form.overlaps else super().unit(form)

    def counts(self, form: Form) -> Counts:
        op, (rows, columns, channels) = convolution(form), form.out.extents
        _, down, across, _ = form.graph.tensors[op.parameters[0]].shape
        strip = strip_of(form)
        strips = -(-rows // strip.rows)
        each = rows * channels
        return {
            "product": each * columns * down * across,
            "output": each * columns,
            "row of a channel": each,
            "element": channels * strips * strip.given * min(strip.pitch, form.source.shape[1]),
            "given row": channels * strips * strip.given * strip.phases,
            "channel": channels * strips,
        }

    def scratch_bytes(self, form: Form) -> int:
        """Some rows of a channel, and what its sums are made of: see ``entry_words``."""
        return 4 * (strip_of(form).words + entry_words(form))


def strip_of(form: Form) -> Strip:
    op, rows = convolution(form), form.out.extents[0]
    _, down, across, _ = form.graph.tensors[op.parameters[0]].shape
    columns, apart = form.target.shape[1], op.stride[1]
    phases = min(apart, across)
    wide = columns + ceil(across / apart) - 1

    def strip(made: int) -> Strip:
        return Strip(made, (made - 1) * op.stride[0] + down, phases, wide)

    fitting = [n for n in range(1, rows + 1) if strip(n).words <= MOST_WORDS]
    return strip(max(fitting, default=1))


def entry_words(form: Form) -> int:
    """Count the words of a channel: what its sum begins with, its weights, and what ends it."""
    _, down, across, _ = form.graph.tensors[form.op.parameters[0]].shape
    return 1 + down * across + 4 + 2 * stepped(form)


def together(columns: int) -> int:
    """Choose how many outputs of a row are made together, as are those that are left."""

    def instructions(outputs: int) -> int:
        return 30 + 3 * 9 + 29 * outputs

    def cost(outputs: int) -> int:
        blocks, rest = divmod(columns, outputs)
        return blocks * instructions(outputs) + (instructions(rest) if rest else 0)

    return min(range(1, min(SUMS, columns) + 1), key=lambda n: (cost(n), columns % n > 0, -n))
