"""Direct 2-D convolution, with groups; depthwise when groups equal the input channels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.families import Weighted, products
from pipeline.graph.operator import BoxValues, Clip, Tensors
from pipeline.graph.requant import PowerOfTwo, Requant
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Conv2d(Weighted):
    """(h, w, c_in) * (c_out, kh, kw, c_in / groups) -> (h', w', c_out).

    ``parameters`` are (weights, bias). ``padding`` is (top, bottom, left, right); padded pixels
    have the real value 0. A fused ReLU is an unsigned output type, or ``clip``.
    """

    channel_axis: ClassVar[int] = 2

    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1
    clip: Clip = None
    requant: Requant = PowerOfTwo()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        height, width, channels = tensors[self.inputs[0]].shape
        out, kernel_h, kernel_w, depth = tensors[self.parameters[0]].shape
        if depth * self.groups != channels or out % self.groups:
            raise ThimbleError(
                f"{self.name}: weights for {depth * self.groups} input channels in {self.groups} "
                f"groups, but {self.inputs[0]} has {channels}"
            )
        top, bottom, left, right = self.padding
        rows = height + top + bottom - (kernel_h - 1) * self.dilation[0] - 1
        columns = width + left + right - (kernel_w - 1) * self.dilation[1] - 1
        if rows < 0 or columns < 0:
            raise ThimbleError(
                f"{self.name}: a {kernel_h}x{kernel_w} kernel is larger than {height}x{width}"
            )
        return rows // self.stride[0] + 1, columns // self.stride[1] + 1, out

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        out, kernel_h, kernel_w, depth = tensors[self.parameters[0]].shape
        image = Operand(
            self.inputs[0],
            (
                Window(0, kernel_h, self.stride[0], -self.padding[0], self.dilation[0]),
                Window(1, kernel_w, self.stride[1], -self.padding[2], self.dilation[1]),
                Window(2, depth, depth, divide=out // self.groups),
            ),
        )
        weights = Operand(
            self.parameters[0],
            (Window(2), Window(None, kernel_h), Window(None, kernel_w), Window(None, depth)),
        )
        return (Term((image, weights)),)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        x, w = self.centred(tensors, out, regions)
        count = tensors[self.parameters[0]].shape[0] // self.groups
        rows, columns, (first, last) = *(stop - start for start, stop in out[:2]), out[2]
        result = np.zeros((len(x), rows, columns, last - first), dtype=np.int64)
        own = np.arange(first, last) // count - first // count  # the one channel of a group of one
        for i in range(w.shape[1]):
            for j in range(w.shape[2]):
                taps, pixels = w[:, i, j], self._pixels(x, i, j, rows, columns)
                if w.shape[3] == 1:
                    result += pixels[..., own] * taps[:, 0]
                else:
                    result += products(pixels, taps, out[2], count)
        return result

    def _pixels(self, x: IntArray, i: int, j: int, rows: int, columns: int) -> IntArray:
        """Select the inputs that tap (i, j) of every output reads: (n, rows, columns, channels)."""
        y, z = i * self.dilation[0], j * self.dilation[1]
        return x[
            :,
            y : y + (rows - 1) * self.stride[0] + 1 : self.stride[0],
            z : z + (columns - 1) * self.stride[1] + 1 : self.stride[1],
        ]
