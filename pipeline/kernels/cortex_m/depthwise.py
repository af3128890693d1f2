"""Depthwise convolution: rows of four channels are taken apart, so that neighbours are pairs; where
a pass has fewer, those of one."""

from __future__ import annotations

from typing import ClassVar

from pipeline.graph.operator import Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.kernels.cortex_m.fast import Fast, convolution, in_groups_of, in_rows
from pipeline.kernels.cortex_m.quick import quick_end
from pipeline.kernels.form import Form
from pipeline.kernels.work import Counts, positions

LANES = 4
"""Channels that one word holds."""

WIDEST = 9
"""Columns of a kernel whose row of weights fits the registers beside some sums."""


class Depthwise(Fast):
    """Each channel is computed from itself, with the strides that there is code for."""

    word = "depthwise"
    takes = (
        f"depthwise convolutions, {LANES} or more channels, strides 1 and 2 along rows, kernels of "
        f"up to {WIDEST} columns"
    )
    costs: ClassVar[Counts] = {
        "pair of taps": 1.93,
        "row of taps": 4.57,
        "output of stride 2": 11.1,
        "row of a channel": 25.6,
        "element widened alone": 3.61,
        "channel": 110.0,
    }

    def can(self, form: Form) -> bool:
        op, tensors = form.op, form.graph.tensors
        if not isinstance(op, Conv2d) or not in_rows(form):
            return False
        channels, at_once = form.target.shape[2], form.out.extents[2]
        return (
            op.groups == channels == form.source.shape[2]
            and channels >= LANES
            and op.dilation == (1, 1)
            and op.stride[1] in (1, 2)
            and tensors[op.parameters[0]].shape[2] <= WIDEST
            and in_groups_of(lanes(at_once), channels, at_once)
            and form.in_rows(op.inputs[0])
            and (at_once == channels or quick_end(op, form.graph) is not None)
        )

    def counts(self, form: Form) -> Counts:
        rows, width = form.out.extents[:2]
        kernel_h, kernel_w = positions(form)
        channels, at_once = form.out.extents[2], lanes(form.out.extents[2])
        elements = rows * width * channels
        stride = convolution(form).stride
        read = min(form.source.shape[0], (rows - 1) * stride[0] + kernel_h)
        return {
            "pair of taps": elements * kernel_h * (odd_kernel(kernel_w) // 2 + 1),
            "row of taps": elements * kernel_h,
            "output of stride 2": elements * (stride[1] == 2),
            # rows that the step before has widened are widened again
            "row of a channel": (rows + max(0, read - rows * stride[0])) * channels,
            "element widened alone": read * form.source.shape[1] * channels * (at_once == 1),
            "channel": channels,
        }

    def scratch_bytes(self, form: Form) -> int:
        """As many rows as the kernel has, of some channels, each channel by itself."""
        op, tensors = convolution(form), form.graph.tensors
        at_once = lanes(form.out.extents[2])
        return tensors[op.parameters[0]].shape[1] * at_once * columns(op, tensors) * 2


def lanes(channels: int) -> int:
    """How many of ``channels`` are taken from a word."""
    return LANES if channels >= LANES else 1


def columns(op: Conv2d, tensors: Tensors) -> int:
    """Elements in a row of one channel, padding included; pairs are read whole."""
    kernel = odd_kernel(tensors[op.parameters[0]].shape[2])
    width_in, width_out = tensors[op.inputs[0]].shape[1], tensors[op.output].shape[1]
    computed = 2 * width_out if op.stride[1] == 2 else width_out + width_out % 2
    needed = max(computed + kernel - 1, op.padding[2] + width_in)
    return needed + needed % 2


def odd_kernel(columns: int) -> int:
    """A kernel's columns with a column of zeros where that makes pairs and one more."""
    return max(3, columns | 1)
