"""What fast kernels need while they run: the companion of ``codegen/cortex_m``, for planners.

Kernels for cores with the DSP extension multiply pairs of 16 bits: inputs are widened into a buffer
of the plan's own before they are multiplied, as often as they are used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from pipeline.graph.operator import Operator, Tensors
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.hardware import Hardware

DSP_CPUS = frozenset({"cortex-m4", "cortex-m7", "cortex-m33"})
"""Those of our boards that have SMLAD and its kin (Armv7E-M, Armv8-M with DSP)."""

MOST_PIXELS = 4
"""Of a convolution that are computed together: their sums fill the registers."""

LANES = 4
"""Channels of a depthwise convolution that one word holds."""

WIDEST = 9
"""Columns of a depthwise kernel whose row of weights fits the registers beside some sums."""

MOST_WINDOW = 9
"""Elements of a window that the registers hold, two in each."""

MOST_COLUMNS = 16
"""Of an input whose columns have code of their own each."""

LEAST_CHANNELS = 8
"""Of an input, for kernels that make one output channel: of fewer, portable ones are as fast."""


def has_dsp(hardware: Hardware) -> bool:
    return hardware.core == "cortex_m" and hardware.cpu in DSP_CPUS


def scratch_bytes(op: Operator, tensors: Tensors, hardware: Hardware) -> int:
    """For all of ``op``'s output; 0 where its kernel needs none, or is the portable one."""
    if not has_dsp(hardware):
        return 0
    if isinstance(op, Dense):
        return dense_bytes(op, tensors)
    if not isinstance(op, Conv2d):
        return 0
    if is_depthwise(op, tensors):
        return depthwise_bytes(op, tensors, LANES)
    return convolution_bytes(op, tensors) if is_plain(op, tensors) else 0


def pass_bytes(op: Operator, tensors: Tensors, hardware: Hardware, channels: int) -> int:
    """For ``channels`` of ``op``'s output: a pass of a loop that makes some at a time."""
    if has_dsp(hardware) and isinstance(op, Conv2d):
        if is_depthwise(op, tensors):
            return depthwise_bytes(op, tensors, lanes(channels))
        if channels == 1:
            return single_bytes(op, tensors)
    return scratch_bytes(op, tensors, hardware)


def is_plain(op: Conv2d, tensors: Tensors) -> bool:
    """A convolution whose windows are all of the input's channels, for two channels at a time."""
    return op.groups == 1 and tensors[op.output].shape[2] > 1


def is_depthwise(op: Conv2d, tensors: Tensors) -> bool:
    """Each channel is computed from itself, with the strides that there is code for."""
    channels = tensors[op.output].shape[2]
    return (
        op.groups == channels == tensors[op.inputs[0]].shape[2]
        and channels >= LANES
        and op.dilation == (1, 1)
        and op.stride[1] in (1, 2)
        and tensors[op.parameters[0]].shape[2] <= WIDEST
    )


def words(elements: int) -> int:
    """That ``elements`` bytes fill."""
    return -(-elements // 4)


def pairs(elements: int) -> int:
    """Words of two numbers each that ``elements`` fill."""
    return -(-elements // 2)


def dense_bytes(op: Dense, tensors: Tensors) -> int:
    """The input, 16 bits an element."""
    return words(tensors[op.inputs[0]].size) * 8 if tensors[op.output].size > 1 else 0


def convolution_bytes(op: Conv2d, tensors: Tensors) -> int:
    """The windows of some pixels, 16 bits an element."""
    out = tensors[op.output].shape
    taps = prod(tensors[op.parameters[0]].shape[1:])
    return pixels_together(out[0] * out[1]) * words(taps) * 8


def accumulation_bytes(
    op: Operator, tensors: Tensors, hardware: Hardware, channels: int, bits: int
) -> int:
    """For a pass that adds ``channels`` of ``op``'s input to accumulators of ``bits``."""
    if not has_dsp(hardware) or not isinstance(op, Conv2d):
        return 0
    return added_bytes(op, tensors, channels, bits)


def added_bytes(op: Conv2d, tensors: Tensors, channels: int, bits: int) -> int:
    """Windows as above, or weights, 16 bits each, see ``few_taps``."""
    if op.groups > 1 or tensors[op.output].shape[2] < 2:
        return 0
    rows, columns, count = tensors[op.output].shape
    taps = prod(tensors[op.parameters[0]].shape[1:3])
    windows = pixels_together(rows * columns) * words(taps * channels) * 8
    if bits > 16 or not few_taps(taps * channels):
        return windows
    height = tensors[op.parameters[0]].shape[1]
    each = (pairs(height * len(kind.taps) * channels) for kind in kinds(op, tensors))
    return max(windows, sum(each) * count * 4)


def few_taps(elements: int) -> bool:
    """Whether a window's ``elements`` stay in registers for all output channels."""
    return elements <= MOST_WINDOW


@dataclass(frozen=True)
class Kind:
    """Output columns ``first`` to ``stop`` whose windows have the same columns ``taps`` inside."""

    first: int
    stop: int
    taps: tuple[int, ...]


def kinds(op: Conv2d, tensors: Tensors) -> list[Kind]:
    """All output columns, from the left on."""
    width, kernel = tensors[op.inputs[0]].shape[1], tensors[op.parameters[0]].shape[2]
    found: list[Kind] = []
    for column in range(tensors[op.output].shape[1]):
        first = column * op.stride[1] - op.padding[2]
        taps = tuple(k for k in range(kernel) if 0 <= first + k * op.dilation[1] < width)
        if found and found[-1].taps == taps:
            found[-1] = replace(found[-1], stop=column + 1)
        else:
            found.append(Kind(column, column + 1, taps))
    return found


def single_bytes(op: Conv2d, tensors: Tensors) -> int:
    """Of a convolution of one output channel: as many rows of the input as the kernel has, and the
    channel's weights, 16 bits an element; 0 where the kernel needs none."""
    if not is_narrow(op, tensors):
        return 0
    _, kernel_h, kernel_w, depth = tensors[op.parameters[0]].shape
    return kernel_h * (tensors[op.inputs[0]].shape[1] + kernel_w) * pairs(depth) * 4


def is_narrow(op: Conv2d, tensors: Tensors) -> bool:
    """Whether there is code for each of a row's columns."""
    _, _, kernel_w, depth = tensors[op.parameters[0]].shape
    columns = tensors[op.inputs[0]].shape[1], tensors[op.output].shape[1]
    return (
        op.groups == 1
        and depth >= LEAST_CHANNELS
        and max(columns) <= MOST_COLUMNS
        and kernel_w <= WIDEST // 2
        and op.stride[0] == 1
    )


def pixels_together(pixels: int) -> int:
    """How many of ``pixels`` to compute together: each block of p costs 3 + 3p instructions for
    two channels and two taps, and the last block is as large as the others."""
    costs = {p: -(-pixels // p) * (3 + 3 * p) for p in range(1, min(MOST_PIXELS, pixels) + 1)}
    return min(costs, key=lambda p: (costs[p], -p))


def lanes(channels: int) -> int:
    """How many of ``channels`` a depthwise convolution takes from a word."""
    return LANES if channels >= LANES else 1


def depthwise_bytes(op: Conv2d, tensors: Tensors, lanes: int) -> int:
    """As many rows as the kernel has, of ``lanes`` channels, each channel by itself."""
    return tensors[op.parameters[0]].shape[1] * lanes * depthwise_columns(op, tensors) * 2


def depthwise_columns(op: Conv2d, tensors: Tensors) -> int:
    """Elements in a row of one channel, padding included; pairs are read whole."""
    kernel = odd_kernel(tensors[op.parameters[0]].shape[2])
    width_in, width_out = tensors[op.inputs[0]].shape[1], tensors[op.output].shape[1]
    computed = 2 * width_out if op.stride[1] == 2 else width_out + width_out % 2
    needed = max(computed + kernel - 1, op.padding[2] + width_in)
    return needed + needed % 2


def odd_kernel(columns: int) -> int:
    """A kernel's columns with a column of zeros where that makes pairs and one more."""
    return max(3, columns | 1)
