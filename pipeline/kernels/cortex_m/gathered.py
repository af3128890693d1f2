"""Kernels that go pixel by pixel, in any order, over what they are made of: the windows of
some pixels are gathered from wherever they lie before any of these pixels is written.

That reads ahead of the plan's order, and may: what a step reads was there before it, so that a
window that is whole when its pixel's turn comes was so earlier. Writes stay in the plan's order.
"""

from dataclasses import replace
from math import prod
from typing import ClassVar

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.conv2d import InPairs, instructions, pixels_together
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.cortex_m.depthwise import LANES
from pipeline.kernels.fast import words
from pipeline.kernels.form import Form
from pipeline.kernels.safe_offset import SafeOffset, best_offset, pixel_offset
from pipeline.kernels.work import END_BYTES, Counts, made, positions

TAIL = 0.05
"""Share of a step's products that code for a last block of fewer pixels has to save."""

MOST_TAPS_UNROLLED = 25
"""Most taps of a depthwise convolution whose sums stay in registers from tap to tap."""


class Gathered(Fitted):
    """Kernel for pixels all of whose channels are made, side by side or each anywhere.

    Attributes:
        latest: pixels by which some of a row may be written later.
        code: bytes that gather and then multiply some pixels, more than a cache of 1 KiB holds of
            it: means of keyword spotting's and visual wake words' layers.
    """

    latest: ClassVar[int] = 0
    code: ClassVar[int] = 0

    def loop_bytes(self, form: Form) -> int:
        return int(self.code * self.table_passes(form))

    def overlap(self, form: Form, tensor: str) -> SafeOffset | None:
        """Allow what portable code does: write each pixel once its inputs are read, or later."""
        if form.aside:
            most = min(self.latest, self.together(form))
            return best_offset(
                form, tensor, (pixel_offset(form, tensor, n) for n in range(most + 1))
            )
        safe = pixel_offset(form, tensor)
        return safe and SafeOffset(safe.forwards)

    def together(self, form: Form) -> int:
        """Pixels whose windows are held at a time."""
        return 1

    def pixels(self, form: Form) -> int:
        """Count the pixels of the step."""
        return prod(form.out.extents[:2])


class GatheredConvolution(Gathered, InPairs):
    word = "gathered_conv2d"
    latest, code = 3, 950
    takes = "convolutions of one group, two or more channels at once, over their input or anywhere"

    def can(self, form: Form) -> bool:
        op = form.op
        return (
            isinstance(op, Conv2d)
            and op.groups == 1
            and form.target.shape[2] >= 2
            and self.window(form).size > 0
            and in_any_order(replace(form, aside=False))
            and (not form.aside or form.out.extents[0] == 1)
        )

    def together(self, form: Form) -> int:
        return pixels_together(self.pixels(form))

    def tail(self, form: Form) -> int:
        """Pixels of the last block, where that is worth code of its own; otherwise it is as large
        as the others."""
        together, pixels = self.together(form), self.pixels(form)
        left, even = pixels % together, all(form.even(form.op.output, axis) for axis in (0, 1))
        if not left or not even:
            return together
        saved = instructions(together) - instructions(left)
        return left if saved >= TAIL * -(-pixels // together) * instructions(together) else together

    def scratch_bytes(self, form: Form) -> int:
        return self.beside(form)[-1]

    def beside(self, form: Form) -> tuple[int, int, int]:
        """Return where in the scratch each of these ends: windows, 16 bits an element; a row of the
        kernel as it is stored, where words of it are not of one pixel, or a scattered pixel;
        scattered pixels' outputs."""
        together, channels = self.together(form), form.source.shape[2]
        windows, columns = InPairs.scratch_bytes(self, form), len(self.window(form).columns)
        line = channels if channels % 4 == 0 else words(channels * columns) * 4
        stored = windows + line * (channels % 4 > 0 or form.given.scattered)
        made = together * form.target.shape[2] * form.out.scattered
        return windows, stored, stored + made


class GatheredDepthwise(Gathered):
    """Four channels of a pixel at a time, whose sums lie beside until all of them are there."""

    word = "gathered_depthwise"
    code = 1370
    takes = (
        f"depthwise convolutions, {LANES} or more channels at once, over their input or anywhere"
    )

    def can(self, form: Form) -> bool:
        op, channels = form.op, form.target.shape[-1]
        return (
            isinstance(op, Conv2d)
            and op.groups == channels == form.source.shape[2]
            and channels >= LANES
            and in_any_order(form)
        )

    def counts(self, form: Form) -> Counts:
        taps = prod(positions(form))
        large = taps > MOST_TAPS_UNROLLED
        return {
            "product of a large window" if large else "product": made(form) * taps,
            "output": made(form),
            "pixel": self.pixels(form),
        }

    def table_bytes(self, form: Form) -> float:
        """Count pairs of 16 bits, beside how sums end."""
        return (2 * prod(positions(form)) + END_BYTES) * form.out.extents[2]

    def table_passes(self, form: Form, cached_bytes: int = 0) -> int:
        """Once for two pixels."""
        return -(-self.pixels(form) // 2)

    def scratch_bytes(self, form: Form) -> int:
        """Outputs of two pixels, and their inputs where they may be scattered."""
        channels = form.target.shape[2]
        return 2 * channels * (1 + form.given.scattered * prod(positions(form)))


def in_any_order(form: Form) -> bool:
    """Return all channels of some pixels, side by side or anywhere, where these lie over what they
    are made of, or anywhere: other kernels are a little faster, but take none of that."""
    parts = form.parts.values()
    return (
        not form.aside
        and not form.partial
        and (bool(form.overlaps) or any(part.spread == "table" for part in parts))
        and form.covers(form.op.output, slice(2, 3))
        and all(
            part.spread == "table"
            or (
                part.spread in ("strides", "rows")
                and not any(part.rings)
                and (part.extents[2] == 1 or part.strides[-1] == part.bits // 4)
            )
            for part in parts
        )
    )
