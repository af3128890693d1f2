"""Any function of one element: of 8 bits as a table, of 16 as lines between entries of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Window
from pipeline.graph.families import OfOne
from pipeline.graph.operator import Constants, Regions, Tensors
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Lookup(OfOne):
    """``table[q - minimum]`` for every stored integer q: sigmoid, tanh, hard-swish, leaky ReLU,
    a change of quantization. Entry 0 is for the input type's least integer."""

    element_wise: ClassVar[bool] = True

    table: tuple[int, ...] = ()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source, target = tensors[self.inputs[0]], tensors.get(self.output)
        if len(self.table) != 1 << source.dtype.bits:
            raise ThimbleError(
                f"{self.name}: {source.dtype} needs a table of {1 << source.dtype.bits}, "
                f"not of {len(self.table)}"
            )
        if target is not None and not (
            target.dtype.minimum <= min(self.table) and max(self.table) <= target.dtype.maximum
        ):
            raise ThimbleError(f"{self.name}: its table has values outside {target.dtype}")
        return source.shape

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        return tuple(Window(d) for d in range(len(tensors[self.inputs[0]].shape)))

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        return min(self.table), max(self.table)

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        place = self.given(tensors, out, regions) - tensors[self.inputs[0]].dtype.minimum
        return np.array(self.table, dtype=np.int64)[place]


@dataclass(frozen=True)
class Interpolate(Lookup):
    """TFLite's 16-bit arithmetic (lut.h, integer_ops/tanh.h and logistic.h) of the integer q.

    u = q * multiplier / 2**shift, rounded, is 0 in the table's middle; entries are 2**interval
    apart, and the last interval at each ``end`` is as its end. The result is the line between two
    entries, times 2**interval, plus ``offset``, divided by 2**narrow and rounded: halves up, or
    where ``odd`` away from the middle.
    """

    multiplier: int = 1
    shift: int = 0
    interval: int = 7
    narrow: int = 7
    offset: int = 0
    odd: bool = False
    end: int = 0

    @property
    def middle(self) -> int:
        """The place of q = 0."""
        return len(self.table) // 2 << self.interval

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        if (bits := tensors[self.inputs[0]].dtype.bits) != 16:
            raise ThimbleError(f"{self.name}: lines are for elements of 16 bits, not of {bits}")
        return tensors[self.inputs[0]].shape

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        x = self.given(tensors, out, regions)
        u = (x * self.multiplier + (1 << self.shift >> 1) >> self.shift) + self.middle
        last, ends = 2 * self.middle, self.end << self.interval
        u = np.where(u <= ends, 0, np.where(u >= last - ends, last, u))
        table, step = np.array([*self.table, 0], np.int64), 1 << self.interval
        low, high = table[u // step], table[u // step + 1]
        line = low * step + (high - low) * (u % step) + self.offset
        half = (1 << self.narrow >> 1) - (self.odd & (u < self.middle))
        return np.asarray((line + half) >> self.narrow)
