"""Average and maximum pooling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.operator import Constants, Operator, Region, Tensors, windowed
from pipeline.graph.requant import PowerOfTwo, Requant
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Pool2d(Operator):
    """(h, w, c) -> (h', w', c), a reduction over ``kernel`` by ``combine``."""

    kernel: tuple[int, int] = (2, 2)
    stride: tuple[int, int] = (2, 2)

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        height, width, channels = tensors[self.inputs[0]].shape
        if height < self.kernel[0] or width < self.kernel[1]:
            raise ThimbleError(
                f"{self.name}: pooling {self.kernel} is larger than {height}x{width}"
            )
        rows = (height - self.kernel[0]) // self.stride[0] + 1
        return rows, (width - self.kernel[1]) // self.stride[1] + 1, channels

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        windows = (
            Window(0, self.kernel[0], self.stride[0]),
            Window(1, self.kernel[1], self.stride[1]),
            Window(2),
        )
        return (Term((Operand(self.inputs[0], windows),)),)

    def reduce(
        self, tensors: Tensors, out: Box, regions: Mapping[str, Region], fill: int
    ) -> IntArray:
        """(n, h, w, c) values of the windows, reduced; absent ones count as ``fill``."""
        operand = self.terms(tensors)[0].operands[0]
        x = windowed(regions[operand.tensor], operand.region(out), fill)
        rows, columns, channels = (stop - start for start, stop in out)
        result = np.full((len(x), rows, columns, channels), fill, dtype=np.int64)
        join = np.add if self.combine == "add" else np.maximum
        for i in range(self.kernel[0]):
            for j in range(self.kernel[1]):
                result = join(
                    result,
                    x[
                        :,
                        i : i + (rows - 1) * self.stride[0] + 1 : self.stride[0],
                        j : j + (columns - 1) * self.stride[1] + 1 : self.stride[1],
                    ],
                )
        return result


@dataclass(frozen=True)
class AveragePool2d(Pool2d):
    """Sum of the window, then ``requant``: floor(sum / 64) turns four u8 into their u4 average.

    The sum is of stored integers: zero points would need a correction, and have to be 0.
    """

    requant: Requant = PowerOfTwo()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        for name in (self.inputs[0], self.output):
            if name in tensors and tensors[name].zero_point != 0:
                raise ThimbleError(
                    f"{self.name}: average pooling needs zero points of 0, but that of {name} is "
                    f"{tensors[name].zero_point}"
                )
        return super().infer(tensors)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        dtype, atoms = tensors[self.inputs[0]].dtype, self.atoms(tensors)
        return min(0, dtype.minimum) * atoms, dtype.maximum * atoms

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, Region]) -> IntArray:
        return self.reduce(tensors, out, regions, 0)

    def finish(
        self, tensors: Tensors, out: Box, acc: IntArray, regions: Mapping[str, Region]
    ) -> IntArray:
        return tensors[self.output].dtype.clip(self.requant.apply(acc))


@dataclass(frozen=True)
class MaxPool2d(Pool2d):
    """Maximum of the window; input and output share one quantization."""

    combine: Literal["add", "maximum"] = "maximum"

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        kinds = {
            (str(t.dtype), t.scale, t.zero_point)
            for t in (tensors.get(name) for name in (self.inputs[0], self.output))
            if t is not None
        }
        if len(kinds) > 1:
            raise ThimbleError(
                f"{self.name}: {self.inputs[0]} and {self.output} differ in type, scale or zero "
                "point; the maximum is one of its inputs and needs the same"
            )
        return super().infer(tensors)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        dtype = tensors[self.inputs[0]].dtype
        return dtype.minimum, dtype.maximum

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, Region]) -> IntArray:
        return self.reduce(tensors, out, regions, tensors[self.output].dtype.minimum)

    def finish(
        self, tensors: Tensors, out: Box, acc: IntArray, regions: Mapping[str, Region]
    ) -> IntArray:
        return acc
