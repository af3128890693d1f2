"""Convolutions and pooling pixel by pixel, in any order, over what they are made of: the windows of
some pixels are gathered from wherever they lie before any of these pixels is written.

That reads ahead of the plan's order, and may: what a step reads was there before it, so that a
window that is whole when its pixel's turn comes was so earlier. Writes stay in the plan's order.
"""

from __future__ import annotations

from math import prod

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.pool2d import Pool2d
from pipeline.kernels.cortex_m.conv2d import pixels_together
from pipeline.kernels.cortex_m.fast import Fast, convolution, words
from pipeline.kernels.cortex_m.pool import MOST_TAPS, one_scale
from pipeline.kernels.form import Form
from pipeline.kernels.gap import Gap, pixel_gap
from pipeline.kernels.work import Counts, made, positions

LANES = 4
"""Channels that one word holds."""

MOST_TAPS_UNROLLED = 25
"""Of a depthwise convolution whose sums stay in registers from tap to tap."""


class Gathered(Fast):
    """Of pixels all of whose channels are made, side by side or each anywhere."""

    def overlap(self, form: Form, tensor: str) -> Gap | None:
        """As portable code: each pixel is written once its inputs are read."""
        gap = pixel_gap(form, tensor)
        return gap and Gap(gap.forwards)

    def pixels(self, form: Form) -> int:
        """Of the step."""
        return prod(form.out.extents[:2])

    def taps(self, form: Form) -> int:
        """Elements of a window."""
        return prod(form.graph.tensors[convolution(form).parameters[0]].shape[1:])


class GatheredConvolution(Gathered):
    """Two channels at a time, of up to four pixels whose windows are widened once."""

    word = "gathered_conv2d"
    takes = "convolutions of one group, two or more channels at once, over their input or anywhere"

    def can(self, form: Form) -> bool:
        op = form.op
        return (
            isinstance(op, Conv2d)
            and op.groups == 1
            and form.target.shape[2] >= 2
            and in_any_order(form)
        )

    def counts(self, form: Form) -> Counts:
        """A word is four elements of a window."""
        together = self.together(form)
        blocks, pairs = -(-self.pixels(form) // together), -(-form.out.extents[2] // 2)
        window = words(self.taps(form))
        return {
            "word of a pixel and a pair": blocks * pairs * window * together,
            "pair of channels": blocks * pairs,
            "word of a window": blocks * together * window,
            "tap": blocks * together * prod(positions(form)),
            "pixel": blocks * together,
        }

    def table_passes(self, form: Form, cached_bytes: int = 0) -> int:
        return -(-self.pixels(form) // self.together(form))

    def together(self, form: Form) -> int:
        """Pixels whose windows are held at a time."""
        return pixels_together(self.pixels(form))

    def scratch_bytes(self, form: Form) -> int:
        return self.beside(form)[-1]

    def beside(self, form: Form) -> tuple[int, int, int]:
        """Where in the scratch each of these ends: windows, 16 bits an element; one as it is
        stored, where words of it are not of one pixel, or a torn pixel; outputs of torn pixels."""
        together, (_, _, channels) = self.together(form), form.source.shape
        windows = together * words(self.taps(form)) * 8
        whole = channels * torn(form, form.op.inputs[0])
        stored = windows + (4 * words(self.taps(form)) if channels % 4 else whole)
        made = together * form.target.shape[2] * torn(form, form.op.output)
        return windows, stored, stored + made


class GatheredDepthwise(Gathered):
    """Four channels of a pixel at a time, whose sums lie beside until all of them are there."""

    word = "gathered_depthwise"
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

    def scratch_bytes(self, form: Form) -> int:
        """Outputs of two pixels, and their inputs where they may be torn."""
        channels = form.target.shape[2]
        return 2 * channels * (1 + torn(form, form.op.inputs[0]) * prod(positions(form)))


class GatheredPool(Gathered):
    """Four channels of a pixel at a time, which lie beside until all of them are there."""

    word = "gathered_pool"
    takes = (
        f"pooling, {LANES} or more channels at once, windows of up to {MOST_TAPS} pixels, over its "
        "input or anywhere"
    )

    def can(self, form: Form) -> bool:
        op = form.op
        return (
            isinstance(op, Pool2d)
            and form.target.shape[-1] >= LANES
            and prod(op.kernel) <= MOST_TAPS
            and one_scale(op)
            and in_any_order(form)
        )

    def counts(self, form: Form) -> Counts:
        """Words are of four channels."""
        pixels, taps, channels = self.pixels(form), prod(positions(form)), form.target.shape[2]
        kind = "average" if form.op.combine == "add" else "maximum"
        return {
            f"word of a tap, {kind}": pixels * taps * words(channels),
            "output of averages": made(form) * (kind == "average"),
            "pixel": pixels,
        }

    def made(self, form: Form) -> int:
        """Where in the scratch a pixel's outputs are: above places of its window's pixels."""
        return 4 * prod(positions(form))

    def scratch_bytes(self, form: Form) -> int:
        return self.made(form) + form.target.shape[2]


def torn(form: Form, tensor: str) -> bool:
    """Whether channels of a pixel may lie anywhere."""
    return form.parts[tensor].spread == "table"


def in_any_order(form: Form) -> bool:
    """All channels of some pixels, side by side or anywhere, where these lie over what they are
    made of, or anywhere: other kernels are a little faster, but take none of that."""
    op, parts = form.op, (form.given, form.out)
    elsewhere = any(part.spread == "table" for part in parts)
    if form.partial or form.aside or not form.covers(op.output, slice(2, 3)):
        return False
    return bool(form.overlaps or elsewhere) and all(
        part.spread == "table"
        or (
            part.spread == "strides"
            and not any(part.rings)
            and (part.extents[2] == 1 or part.strides[2] == part.bits // 4)
        )
        for part in parts
    )
