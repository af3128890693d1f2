"""Convolution of one output channel: a pass of a loop that makes channels one by one.

No other channel uses what is widened. Where rows are short, a row of the input is widened once for
all rows of the kernel, and a pixel is loaded once for all its taps. Elsewhere elements are
multiplied as they are stored, tap by tap or, where pixels have few channels, a row of the kernel at
once.
"""

from statistics import fmean as mean

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.costs import Fitted
from pipeline.kernels.fast import convolution, in_rows, pairs
from pipeline.kernels.form import Form
from pipeline.kernels.quick import quick_end
from pipeline.kernels.taps import inside
from pipeline.kernels.work import Counts, made, positions

MOST_COLUMNS = 16
"""Most columns of an input whose columns have code of their own each."""

WIDEST = 4
"""Columns of a kernel, for them."""

LEAST_CHANNELS = 8
"""Fewest input channels, or products in a kernel's row: of fewer, portable C is as fast."""


class Single(Fitted):
    """Piece by piece: of a tap, or of a row of the kernel where pixels have few channels."""

    word = "single"
    takes = (
        "convolutions of one group, one channel at a time, of "
        f"{LEAST_CHANNELS} or more or with as many products in a row of the kernel"
    )

    def can(self, form: Form) -> bool:
        if not _one_channel(form):
            return False
        op, depth = convolution(form), form.source.shape[2]
        kernel_w = form.graph.tensors[op.parameters[0]].shape[2]
        short = kernel_w * depth < LEAST_CHANNELS or op.dilation[1] > 1
        return depth >= LEAST_CHANNELS or not short

    def counts(self, form: Form) -> Counts:
        """Count taps; where a kernel's row is a piece, only those of rows partly outside."""
        depth, (down, across) = form.source.shape[2], _inside(form)
        _, kernel_w = positions(form)
        several = made(form) * mean(down) / len(across)
        whole = across.count(kernel_w) if depth < LEAST_CHANNELS else 0
        pieces, taps = several * whole, several * (sum(across) - whole * kernel_w)
        of_row, left = divmod(kernel_w * depth, 4)
        return {
            "word of a piece": pieces * of_row + taps * (depth // 4),
            "product left over": pieces * left + taps * (depth % 4),
            "row in one piece": pieces,
            "tap": taps,
            "output": made(form),
        }


class Strips(Fitted):
    """Several outputs of a row at once."""

    word = "strips"
    priced = "single"
    takes = (
        f"convolutions of one group, one channel at a time, of {LEAST_CHANNELS} or more, up to "
        f"{MOST_COLUMNS} columns, kernels of up to {WIDEST}"
    )

    def can(self, form: Form) -> bool:
        if not _one_channel(form):
            return False
        op, tensors = convolution(form), form.graph.tensors
        _, _, kernel_w, depth = tensors[op.parameters[0]].shape
        return (
            depth >= LEAST_CHANNELS
            and max(form.source.shape[1], form.target.shape[1]) <= MOST_COLUMNS
            and kernel_w <= WIDEST
            and op.stride[0] == 1
            and all(inside(op, tensors, 1))
            and quick_end(op, form.graph) is not None
        )

    def counts(self, form: Form) -> Counts:
        depth, (down, across) = pairs(form.source.shape[2]), _inside(form)
        return {
            "pair of products": made(form) * mean(down) * mean(across) * depth,
            "pair of an output": made(form) * depth,
            "output": made(form),
        }

    def scratch_bytes(self, form: Form) -> int:
        """Count as many rows of the input as the kernel has, and the channel's weights, 16 bits an
        element."""
        shape = form.graph.tensors[convolution(form).parameters[0]].shape
        _, kernel_h, kernel_w, depth = shape
        return kernel_h * (form.source.shape[1] + kernel_w) * pairs(depth) * 4


def _inside(form: Form) -> tuple[list[int], list[int]]:
    """Count the rows of the kernel that are inside of the image for each row of the output, and the
    columns for each column; the others are not multiplied."""
    op, tensors = convolution(form), form.graph.tensors
    down, across = ([*map(len, inside(op, tensors, axis))] for axis in (0, 1))
    return down, across


def _one_channel(form: Form) -> bool:
    op = form.op
    return (
        isinstance(op, Conv2d)
        and op.groups == 1
        and in_rows(form)
        and not form.overlaps
        and form.covers(op.output, slice(0, 1))
        and form.evenly_spaced(op.output)
        and form.out.extents[2] == 1
        and form.in_one_piece(op.inputs[0])
    )
