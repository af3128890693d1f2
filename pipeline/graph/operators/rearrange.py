"""Elements chosen and put elsewhere: slices, strided slices, transpositions, nearest neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.families import Placing
from pipeline.graph.operator import BoxValues, Tensors, windowed
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Rearrange(Placing):
    """Output element o is the input element that has, along each input axis d, the index
    ``o[axes[d]] // repeats[d] * steps[d] + starts[d]``; the quantization stays.

    ``shape`` is the output's, which has as many axes as the input.
    """

    fixed_shape: ClassVar[bool] = True

    shape: tuple[int, ...] = ()
    axes: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source = tensors[self.inputs[0]]
        rank = len(source.shape)
        if sorted(self.axes) != list(range(rank)) or len(self.shape) != rank:
            raise ThimbleError(f"{self.name}: axes {self.axes} do not fit {source.shape}")
        if min(*self.shape, *self.steps, *self.repeats) < 1 or min(self.starts) < 0:
            raise ThimbleError(f"{self.name}: steps, repeats and shape begin at 1, starts at 0")
        for operand, extent in zip(self.windows, source.shape, strict=True):
            assert operand.axis is not None
            if operand.span(0, self.shape[operand.axis])[1] > extent:
                raise ThimbleError(f"{self.name}: {self.shape} reaches beyond {source.shape}")
        self.same_quantization(tensors)
        return self.shape

    def whole_pixels(self, source: tuple[int, ...]) -> bool:
        """Check whether it selects whole pixels of an image (h, w, c), unchanged and none twice."""
        kept = self.axes == (0, 1, 2) and self.repeats == (1, 1, 1)
        return kept and self.shape[2] == source[2]

    @property
    def windows(self) -> tuple[Window, ...]:
        fields = zip(self.axes, self.starts, self.steps, self.repeats, strict=True)
        return tuple(
            Window(axis, stride=step, offset=start, divide=repeat)
            for axis, start, step, repeat in fields
        )

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        return (Term((Operand(self.inputs[0], self.windows),)),)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        zero = tensors[self.output].zero_point
        operand = self.terms(tensors)[0].operands[0]
        taken = windowed(regions[operand.tensor], operand.region(out), zero) - zero
        for place, window in enumerate(self.windows):
            assert window.axis is not None
            each = np.arange(*out[window.axis]) // window.divide
            each -= out[window.axis][0] // window.divide
            taken = taken.take(each * window.stride, 1 + place)
        return taken.transpose(0, *(1 + self.axes.index(axis) for axis in range(len(out))))
