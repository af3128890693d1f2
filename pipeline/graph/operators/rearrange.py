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

    ``shape`` is the output's, which has as many axes as the input. A step of less than 0 goes back
    from a start; such an axis counts as read whole up to there.
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
        if min(*self.shape, *self.repeats) < 1 or 0 in self.steps:
            raise ThimbleError(f"{self.name}: repeats and shape begin at 1, steps are not 0")
        every = self.chosen(tuple((0, extent) for extent in self.shape))
        for chosen, extent in zip(every, source.shape, strict=True):
            if not (0 <= chosen[0] < extent and 0 <= chosen[-1] < extent):
                raise ThimbleError(f"{self.name}: {self.shape} reaches beyond {source.shape}")
        self.same_quantization(tensors)
        return self.shape

    def whole_pixels(self, source: tuple[int, ...]) -> bool:
        """Check whether it selects whole pixels of an image (h, w, c), unchanged and none twice."""
        kept = self.axes == (0, 1, 2) and self.repeats == (1, 1, 1) and min(self.steps) > 0
        return kept and self.shape[2] == source[2]

    def chosen(self, out: Box) -> list[IntArray]:
        """Along each input axis the indices that ``out`` is made of."""
        fields = zip(self.axes, self.starts, self.steps, self.repeats, strict=True)
        return [
            np.arange(*out[axis]) // repeat * step + start for axis, start, step, repeat in fields
        ]

    @property
    def windows(self) -> tuple[Window, ...]:
        fields = zip(self.axes, self.starts, self.steps, self.repeats, strict=True)
        return tuple(
            Window(axis, stride=step, offset=start, divide=repeat)
            if step > 0
            else Window(None, start + 1)
            for axis, start, step, repeat in fields
        )

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        return (Term((Operand(self.inputs[0], self.windows),)),)

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        zero = tensors[self.output].zero_point
        operand = self.terms(tensors)[0].operands[0]
        taken = windowed(regions[operand.tensor], operand.region(out), zero) - zero
        for place, (chosen, (first, _)) in enumerate(
            zip(self.chosen(out), operand.region(out), strict=True)
        ):
            taken = taken.take(chosen - first, 1 + place)
        return taken.transpose(0, *(1 + self.axes.index(axis) for axis in range(len(out))))
