"""Elements put elsewhere, as they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph import broadcast
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.families import OfOne, Placing
from pipeline.graph.operator import Regions, Tensors
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Concat(Placing):
    """Tensors of one quantization side by side along ``axis``: every output element is an element
    of one input and padding of all others."""

    axis: int = 2

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        if len(set(self.inputs)) != len(self.inputs):
            raise ThimbleError(f"{self.name}: a tensor is concatenated with itself")
        self.same_quantization(tensors)
        parts = [tensors[name] for name in self.inputs]
        rest = {t.shape[: self.axis] + t.shape[self.axis + 1 :] for t in parts}
        if len(rest) > 1 or not 0 <= self.axis < len(parts[0].shape):
            listed = ", ".join("x".join(map(str, t.shape)) for t in parts)
            raise ThimbleError(f"{self.name}: {listed} cannot be joined along axis {self.axis}")
        shape = list(parts[0].shape)
        shape[self.axis] = sum(t.shape[self.axis] for t in parts)
        return tuple(shape)

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        terms, base = [], 0
        for name in self.inputs:
            shape = tensors[name].shape
            terms.append(Term((Operand(name, _from(base, self.axis, len(shape))),)))
            base += shape[self.axis]
        return tuple(terms)

    def in_place(self, tensors: Tensors) -> dict[str, int]:
        """Return all inputs, one after the other, where no axis before has several entries."""
        if prod(tensors[self.output].shape[: self.axis]) > 1:
            return {}
        sizes = [tensors[name].size for name in self.inputs]
        return dict(zip(self.inputs, accumulate([0, *sizes[:-1]]), strict=True))

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        total = np.zeros((1, *(stop - start for start, stop in out)), dtype=np.int64)
        for term in self.terms(tensors):
            total = total + broadcast.centred(term.operands[0], tensors, out, regions)
        return total


@lru_cache(1 << 10)
def _from(base: int, axis: int, rank: int) -> tuple[Window, ...]:
    """Return the windows of a tensor that begins at ``base`` of the ``axis``."""
    return tuple(Window(each, offset=-base * (each == axis)) for each in range(rank))


@dataclass(frozen=True)
class Pad(OfOne, Placing):
    """``padding``, (before, after) of each axis, with the stored integer ``value``; None: the zero
    point.
    """

    padding: tuple[tuple[int, int], ...] = ()
    value: int | None = None

    def fill(self, tensors: Tensors) -> int:
        """Return the stored integer that is padded with."""
        return tensors[self.inputs[0]].zero_point if self.value is None else self.value

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source = tensors[self.inputs[0]]
        if len(self.padding) != len(source.shape) or min(map(min, self.padding)) < 0:
            raise ThimbleError(f"{self.name}: padding of {self.padding} does not fit {source.name}")
        self.same_quantization(tensors)
        pairs = zip(source.shape, self.padding, strict=True)
        return tuple(extent + before + after for extent, (before, after) in pairs)

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        return tuple(Window(d, offset=-before) for d, (before, _) in enumerate(self.padding))

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        x = self.given(tensors, out, regions, self.fill(tensors))
        return x - tensors[self.output].zero_point


@dataclass(frozen=True)
class Rearrange(OfOne, Placing):
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

    def in_place(self, tensors: Tensors) -> dict[str, int]:
        """Return the input where the output is one piece of it: that moves towards the front."""
        source = tensors[self.inputs[0]].shape
        cut = next((n for n, extent in enumerate(self.shape) if extent > 1), 0)
        kept = self.axes == (*range(len(source)),) and {*self.steps, *self.repeats} == {1}
        one_piece = kept and self.shape[cut + 1 :] == source[cut + 1 :]
        return dict.fromkeys(self.inputs, 0) if one_piece else {}

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

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        fields = zip(self.axes, self.starts, self.steps, self.repeats, strict=True)
        return tuple(
            Window(axis, stride=step, offset=start, divide=repeat)
            if step > 0
            else Window(None, start + 1)
            for axis, start, step, repeat in fields
        )

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        taken = self.given(tensors, out, regions) - tensors[self.output].zero_point
        begins = (first for first, _ in self.region(tensors, out))
        for place, (chosen, first) in enumerate(zip(self.chosen(out), begins, strict=True)):
            taken = taken.take(chosen - first, 1 + place)
        return taken.transpose(0, *(1 + self.axes.index(axis) for axis in range(len(out))))


@dataclass(frozen=True)
class Reshape(OfOne):
    """The same elements, row-major, in another shape: declared to read its whole input for any
    element, so that a step takes it in one unit. It may put the output where the input is, which
    costs nothing."""

    fixed_shape: ClassVar[bool] = True

    shape: tuple[int, ...] = ()

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        source = tensors[self.inputs[0]]
        if prod(self.shape) != source.size or not self.shape:
            raise ThimbleError(f"{self.name}: {source.shape} cannot be reshaped to {self.shape}")
        self.same_quantization(tensors)
        return self.shape

    def windows(self, tensors: Tensors) -> tuple[Window, ...]:
        return tuple(Window(None, extent) for extent in tensors[self.inputs[0]].shape)

    def overwritable(self, tensors: Tensors) -> tuple[str, ...]:
        """Return the input if it has the output's size: all is read at once and may stay there."""
        return self.same_sized(tensors)

    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        x = self.given(tensors, out, regions)
        return x.reshape(len(x), *self.shape)[:, *(slice(*each) for each in out)]
