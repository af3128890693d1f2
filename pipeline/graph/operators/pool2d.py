"""Pooling: windows reduced, by sums or by picking one of their values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Window
from pipeline.graph.families import OfOne, Sliding
from pipeline.graph.operator import Clip, Constants, Regions, Tensors, clipped_to
from pipeline.graph.reductions import Combine
from pipeline.graph.requant import FixedPoint, Mean, PowerOfTwo, overflow
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Pool2d(OfOne, Sliding):
    """(h, w, c) -> (h', w', c), a reduction over ``kernel`` by ``combine``; padded pixels take no
    part."""

    combine: ClassVar[Combine] = "add"
    accumulates: ClassVar[bool] = True

    kernel: tuple[int, int] = (2, 2)
    stride: tuple[int, int] = (2, 2)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    clip: Clip = None
    dilation: tuple[int, int] = (1, 1)

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        reach = [(n - 1) * apart + 1 for n, apart in zip(self.kernel, self.dilation, strict=True)]
        if max(self.padding[:2]) >= reach[0] or max(self.padding[2:]) >= reach[1]:
            raise ThimbleError(f"{self.name}: some windows of {self.kernel} lie in the padding")
        return *self.extents(tensors), tensors[self.inputs[0]].shape[2]

    def window(self, tensors: Tensors) -> tuple[int, int]:
        return self.kernel

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        return *self.pixels(tensors), Window(2)

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        """(n, h, w, c) values of the windows, reduced; sums are of values less their zero point."""
        source = tensors[self.inputs[0]]
        start = self.reduction.start(source.dtype)
        zero = source.zero_point if self.combine == "add" else 0
        x = self.given(tensors, out, regions, start + zero) - zero
        rows, columns, channels = (stop - start for start, stop in out)
        result = np.full((len(x), rows, columns, channels), start, dtype=np.int64)
        for _, pixels in self.taps(x, (rows, columns), self.kernel):
            result = self.reduction.join(result, pixels)
        return result

    @abstractmethod
    def finish(self, tensors: Tensors, out: Box, acc: IntArray, regions: Regions) -> IntArray: ...


@dataclass(frozen=True)
class AveragePool2d(Pool2d):
    """Sum of the window, less its zero points, then ``requant``.

    ``PowerOfTwo``: floor(sum / 64) turns four u8 into their u4 average; no zero point, no padding.
    ``Mean``: TFLite's AVERAGE_POOL_2D, over the pixels that are not padding.
    ``FixedPoint``: to another scale, a division by the window's size included; no padding.
    """

    requant: PowerOfTwo | FixedPoint | Mean = PowerOfTwo()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        if self.dilation != (1, 1):
            raise ThimbleError(f"{self.name}: maxima may be of pixels apart, averages not")
        if isinstance(self.requant, Mean):
            self.same_quantization(tensors)
        elif any(self.padding):
            raise ThimbleError(f"{self.name}: padded average pooling needs the requantization Mean")
        if isinstance(self.requant, PowerOfTwo):
            for name in (self.inputs[0], self.output):
                if name in tensors and tensors[name].zero_point != 0:
                    raise ThimbleError(
                        f"{self.name}: average pooling by a shift needs zero points of 0, but that "
                        f"of {name} is {tensors[name].zero_point}"
                    )
        return super().infer(tensors)

    def overflow(self, tensors: Tensors, constants: Constants) -> str:
        requant = PowerOfTwo() if isinstance(self.requant, Mean) else self.requant
        return overflow(requant, self.partial_sums(tensors, constants))

    def shift(self, tensors: Tensors) -> int | None:
        """Bits that each value is shifted to the right by, where that is all that is done: windows
        of one pixel, whole numbers that fit; else None."""
        source, target = (tensors[name].dtype for name in (self.inputs[0], self.output))
        one_by_one = self.kernel == self.stride == (1, 1) and not any(self.padding)
        if not (one_by_one and isinstance(self.requant, PowerOfTwo)) or self.clip:
            return None
        right = self.requant.right_shift
        plain = self.requant == PowerOfTwo(0, right, "floor") and not source.signed
        return right if plain and source.maximum >> right <= target.maximum else None

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        source, atoms = tensors[self.inputs[0]], self.atoms(tensors)
        low, high = (e - source.zero_point for e in (source.dtype.minimum, source.dtype.maximum))
        return min(0, low) * atoms, max(0, high) * atoms

    def finish(self, tensors: Tensors, out: Box, acc: IntArray, regions: Regions) -> IntArray:
        target = tensors[self.output]
        if not isinstance(self.requant, Mean):
            value = self.requant.part(*out[2]).apply(acc)
            return clipped_to(target, self.clip, value)
        # rounding is of the mean of stored integers, zero points included
        count = self.counts(tensors, out)
        stored = self.requant.apply(acc + count * target.zero_point, count)
        return clipped_to(target, self.clip, stored - target.zero_point)

    def counts(self, tensors: Tensors, out: Box) -> IntArray:
        """Count the pixels of each window inside the image: shape (rows, columns, 1)."""
        inside = []
        for window, extent in zip(
            self.windows(tensors), tensors[self.inputs[0]].shape[:2], strict=False
        ):
            assert window.axis is not None
            first = np.arange(*out[window.axis]) * window.stride + window.offset
            inside.append(np.minimum(first + window.count, extent) - np.maximum(first, 0))
        return np.asarray(inside[0][:, None, None] * inside[1][:, None], dtype=np.int64)


@dataclass(frozen=True)
class MaxPool2d(Pool2d):
    """The greatest of the window's values; input and output share one quantization."""

    combine: ClassVar[Combine] = "maximum"

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        self.same_quantization(tensors)
        return super().infer(tensors)

    def finish(self, tensors: Tensors, out: Box, acc: IntArray, regions: Regions) -> IntArray:
        target = tensors[self.output]
        return clipped_to(target, self.clip, acc - target.zero_point)


@dataclass(frozen=True)
class MinPool2d(MaxPool2d):
    """The least of them."""

    combine: ClassVar[Combine] = "minimum"


POOLINGS = (AveragePool2d, MaxPool2d, MinPool2d)
