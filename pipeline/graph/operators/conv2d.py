"""Direct 2-D convolution, with groups: depthwise, if as many as input channels. Dense layers.
Transposed convolution: every input pixel is spread over a window of the output."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.families import Sliding, Weighted, products
from pipeline.graph.operator import Clip, Regions, Tensors
from pipeline.graph.reductions import Combine
from pipeline.graph.requant import FixedPoint, PowerOfTwo, Requant
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Conv2d(Weighted, Sliding):
    """(h, w, c_in) * (c_out, kh, kw, c_in / groups) -> (h', w', c_out).

    Padded pixels have the real value 0. A fused ReLU is an unsigned output type, or ``clip``.
    """

    channel_axis: ClassVar[int] = 2

    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    clip: Clip = None
    requant: Requant = PowerOfTwo()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        channels, (out, *_, depth) = tensors[self.inputs[0]].shape[2], self._shape(tensors)
        if depth * self.groups != channels or out % self.groups:
            raise ThimbleError(
                f"{self.name}: weights for {depth * self.groups} input channels in {self.groups} "
                f"groups, but {self.inputs[0]} has {channels}"
            )
        return *self.extents(tensors), out

    def _shape(self, tensors: Tensors) -> tuple[int, ...]:
        return tensors[self.parameters[0]].shape

    def window(self, tensors: Tensors) -> tuple[int, int]:
        _, rows, columns, _ = self._shape(tensors)
        return rows, columns

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        out, *kernel = self._shape(tensors)
        channels = Window(2, kernel[2], kernel[2], divide=out // self.groups)
        image = Operand(self.inputs[0], (*self.pixels(tensors), channels))
        weights = (Window(2), *(Window(None, extent) for extent in kernel))
        return (Term((image, Operand(self.parameters[0], weights))),)

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        x, w = self.centred(tensors, out, regions)
        count = tensors[self.parameters[0]].shape[0] // self.groups
        rows, columns, (first, last) = *(stop - start for start, stop in out[:2]), out[2]
        result = np.zeros((len(x), rows, columns, last - first), dtype=np.int64)
        if w.shape[3] == 1:  # a group's one channel
            x = x[..., np.arange(first, last) // count - first // count]
        for (i, j), pixels in self.taps(x, (rows, columns), w.shape[1:3]):
            if w.shape[3] == 1:
                result += pixels * w[:, i, j, 0]
            else:
                result += products(pixels, w[:, i, j], out[2], count)
        return result


@dataclass(frozen=True)
class Dense(Weighted):
    """A fully connected layer: (input shape) * (c_out, input shape) -> (c_out,)."""

    channel_axis: ClassVar[int] = 0
    slides: ClassVar[bool] = True

    clip: Clip = None
    requant: Requant = PowerOfTwo()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shape, weights = tensors[self.inputs[0]].shape, tensors[self.parameters[0]].shape
        if weights[1:] != shape:
            raise ThimbleError(f"{self.name}: weights for {weights[1:]}, but the input is {shape}")
        return weights[:1]

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        whole = tuple(Window(None, extent) for extent in tensors[self.inputs[0]].shape)
        return (
            Term(
                (Operand(self.inputs[0], whole), Operand(self.parameters[0], (Window(0), *whole)))
            ),
        )

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        x, w = self.centred(tensors, out, regions)
        count = tensors[self.output].size
        return products(x.reshape(len(x), -1), w.reshape(len(w), -1), out[0], count)


@dataclass(frozen=True)
class Phase:
    """Every ``stride``-th index of the output, from ``start`` on, is an ordinary convolution of
    the input by the weights ``taps``, in this order: index n of it begins at n + ``first``, and
    each tap is ``dilation`` further."""

    start: int
    taps: tuple[int, ...]
    first: int
    dilation: int

    @property
    def last(self) -> int:
        return self.first + max(0, len(self.taps) - 1) * self.dilation


def phases(taps: int, stride: int, dilation: int, before: int) -> tuple[Phase, ...]:
    """Tap k adds input i to output ``i * stride + k * dilation - before`` (Shi et al., Is the
    deconvolution layer the same as a convolutional layer?, 2016)."""
    found = list[Phase]()
    apart = stride // int(np.gcd(stride, dilation))
    for start in range(stride):
        used = [k for k in range(taps) if (start + before - k * dilation) % stride == 0][::-1]
        first = (start + before - used[0] * dilation) // stride if used else 0
        found.append(Phase(start, tuple(used), first, max(1, apart * dilation // stride)))
    return tuple(found)


@dataclass(frozen=True)
class TransposeConv(Weighted):
    """(h, w, c_in) * (c_out, kh, kw, c_in / groups) -> ``size`` (h', w'), c_out.

    ``before`` rows and columns are left out at the top and on the left. TFLite's int8
    TRANSPOSE_CONV: sums are those of a convolution, and end as its do.
    """

    channel_axis: ClassVar[int] = 2
    combine: ClassVar[Combine] = "whole"
    accumulates: ClassVar[bool] = False
    weighted: ClassVar[bool] = False
    fixed_shape: ClassVar[bool] = True

    size: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    before: tuple[int, int] = (0, 0)
    groups: int = 1
    clip: Clip = None
    requant: FixedPoint = FixedPoint((0,), (0,))

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shape, (out, *_, depth) = tensors[self.inputs[0]].shape, tensors[self.parameters[0]].shape
        if len(shape) != 3 or depth * self.groups != shape[2] or out % self.groups:
            raise ThimbleError(f"{self.name}: weights for {depth} channels do not fit {shape}")
        if min(*self.size, *self.stride, *self.dilation) < 1:
            raise ThimbleError(f"{self.name}: size, stride and dilation begin at 1")
        return *self.size, out

    def along(self, axis: int, tensors: Tensors) -> tuple[Phase, ...]:
        """Return the phases of rows (0) or columns (1)."""
        taps = tensors[self.parameters[0]].shape[1 + axis]
        return phases(taps, self.stride[axis], self.dilation[axis], self.before[axis])

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        (out, *taps, depth), spans = tensors[self.parameters[0]].shape, list[Window]()
        for axis, stride in enumerate(self.stride):
            every = [phase for phase in self.along(axis, tensors) if phase.taps]
            low, high = min(p.first for p in every), max(p.last for p in every)
            spans.append(Window(axis, high - low + 1, 1, low, divide=stride))
        image = (*spans, Window(2, depth, depth, divide=out // self.groups))
        weights = (Window(2), *(Window(None, n) for n in (*taps, depth)))
        return (
            Term((Operand(self.inputs[0], image),)), Term((Operand(self.parameters[0], weights),)),
        )  # fmt: skip

    def macs(self, tensors: Tensors) -> int:
        """Count each weight once for each input pixel, whether its result is left out or not."""
        *size, _ = tensors[self.inputs[0]].shape
        return int(np.prod(size)) * tensors[self.parameters[0]].size

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        (top, *_), (left, *_), _ = self.terms(tensors)[0].operands[0].region(out)
        x, w = self.centred(tensors, out, regions)
        result = np.zeros((len(x), *(stop - start for start, stop in out)), np.int64)
        count = tensors[self.parameters[0]].shape[0] // self.groups
        for i, rows, down in self._reached(0, out[0], w.shape[1]):
            for j, columns, along in self._reached(1, out[1], w.shape[2]):
                pixels = x[:, down - top][:, :, along - left]
                result[:, rows[:, None], columns] += products(pixels, w[:, i, j], out[2], count)
        return result

    def _reached(
        self, axis: int, span: tuple[int, int], taps: int
    ) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Yield each tap, the places in ``span`` that it adds to, and the input's that it reads."""
        stride, each = self.stride[axis], np.arange(*span)
        for tap in range(taps):
            source = each + self.before[axis] - tap * self.dilation[axis]
            places = np.flatnonzero(source % stride == 0)
            if len(places):
                yield tap, places, source[places] // stride
