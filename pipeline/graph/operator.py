"""The interface of every operator. A family of operators is one file in ``operators/``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.reductions import REDUCTIONS, Combine, Reduction
from pipeline.graph.requant import PowerOfTwo, overflow
from pipeline.graph.tensor import Box, IntArray, Tensor

AT_ONCE = 1 << 16
"""Weights that are looked at together, so that what is made of them stays in a cache."""

Tensors = Mapping[str, Tensor]
Constants = Mapping[str, IntArray]


@dataclass(frozen=True)
class BoxValues:
    """Values of the box ``box`` of a tensor for some frames at once.

    ``values`` has shape (n, extents of the box); constants have n = 1 and serve every frame.
    """

    box: Box
    values: IntArray


Regions = Mapping[str, BoxValues]
"""By tensor."""


@dataclass(frozen=True)
class Operator(ABC):
    """A node of the graph: ``inputs`` are activations, ``parameters`` are constants.

    Attributes:
        combine: how contributions to one accumulator meet; ``whole`` operators have no partial
            result.
        element_wise: an output element is made of the inputs' elements at its place, or of those
            that are broadcast to it; kernels compute one after the other.
        accumulates: what an output element is made of may be added (or compared) part by part, in
            accumulators that are requantized once they are complete.
        weighted: sums of products with weights, which lead with the output's channels, and a bias:
            the two ``parameters``.
        slides: a window over one input, of which each output element is a sum or a maximum.
        fixed_shape: the output's shape is the operator's own and does not follow its inputs'.
        reading: the fields that name what it reads.
    """

    combine: ClassVar[Combine] = "whole"
    element_wise: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False
    weighted: ClassVar[bool] = False
    slides: ClassVar[bool] = False
    fixed_shape: ClassVar[bool] = False
    reading: ClassVar[tuple[str, ...]] = ("inputs", "parameters")

    name: str
    inputs: tuple[str, ...]
    output: str
    parameters: tuple[str, ...] = ()

    @property
    def reduction(self) -> Reduction:
        return REDUCTIONS[self.combine]

    def renamed(self, names: Mapping[str, str]) -> Self:
        """Return the same operator, reading ``names[x]`` wherever it read ``x``."""
        changed: dict[str, Any] = {
            field: tuple(names.get(name, name) for name in getattr(self, field))
            for field in self.reading
        }
        return replace(self, **changed)

    @abstractmethod
    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        """The output's shape; raises ThimbleError when the inputs' shapes do not go together."""

    def same_quantization(self, tensors: Tensors) -> None:
        """Raises ThimbleError unless inputs and output share type, scale and zero point."""
        known = [tensors[name] for name in (*self.inputs, self.output) if name in tensors]
        if len({(str(t.dtype), t.scale, t.zero_point) for t in known}) > 1:
            listed = ", ".join(self.inputs)
            raise ThimbleError(
                f"{self.name}: {listed} and {self.output} differ in type, scale or zero point; it "
                "needs the same"
            )

    @abstractmethod
    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        """Declare what every output element is made of."""

    def completion(self, tensors: Tensors) -> tuple[Operand, ...]:
        """Constants read once an element's sum is complete, such as a bias."""
        return ()

    def reads(self, tensors: Tensors) -> tuple[Operand, ...]:
        """All that is read, one entry for each time; constants of ``completion`` at the end."""
        terms = (operand for term in self.terms(tensors) for operand in term.operands)
        return (*terms, *self.completion(tensors))

    def channel_wise(self, tensors: Tensors) -> bool:
        """Check whether output channel c is made of channel c of every input and of nothing else of
        them."""
        shape = tensors[self.output].shape
        return all(
            operand.windows[-1] == Window(len(shape) - 1)
            and tensors[operand.tensor].shape[-1] == shape[-1]
            for operand in self.reads(tensors)
            if operand.tensor in self.inputs
        )

    def reads_all(self, tensors: Tensors) -> bool:
        """Check whether every output element reads all of the first input."""
        operand = self.terms(tensors)[0].operands[0]
        shape = tensors[operand.tensor].shape
        return operand.windows == tuple(Window(None, extent) for extent in shape)

    def mixes_channels(self, tensors: Tensors) -> bool:
        """Check whether every output channel reads every input channel through its own weights."""
        return self.weighted and self._group(tensors) == tensors[self.inputs[0]].shape[-1]

    def depthwise(self, tensors: Tensors) -> bool:
        """Check whether every output channel reads one of several input channels by weights."""
        return self.weighted and self._group(tensors) == 1 < tensors[self.inputs[0]].shape[-1]

    def _group(self, tensors: Tensors) -> int:
        """Count the channels of the first input that an output element reads."""
        return self.terms(tensors)[0].operands[0].windows[-1].count

    def overwritable(self, tensors: Tensors) -> tuple[str, ...]:
        """Inputs whose place the output can take, if nothing else needs them: of an element-wise
        operator those of its size that are not broadcast.

        Each output element then lies where the one input element lay that no other output reads.
        """
        target, operands = tensors[self.output], self.reads(tensors)
        return tuple(
            name
            for name in self.same_sized(tensors)
            if self.element_wise
            and all(_same_place(o, target.shape) for o in operands if o.tensor == name)
        )

    def in_place(self, tensors: Tensors) -> dict[str, int]:
        """Return the inputs whose place the output can take if all of them die, and how many of its
        elements lie before each."""
        return dict.fromkeys(self.overwritable(tensors), 0)

    def same_sized(self, tensors: Tensors) -> tuple[str, ...]:
        """Inputs that take as much room as the output."""
        target = tensors[self.output]
        return tuple(
            name
            for name in dict.fromkeys(self.inputs)
            if (tensors[name].size, tensors[name].dtype.bits) == (target.size, target.dtype.bits)
        )

    @abstractmethod
    def accumulate(self, tensors: Tensors, out: Box, regions: Regions) -> IntArray:
        """Exact accumulators (n, extents of ``out``) from the given parts of the operands.

        Atoms with an operand element outside its region contribute nothing, so that disjoint
        regions give partial accumulators that ``combine`` to the whole.
        """

    def finish(self, tensors: Tensors, out: Box, acc: IntArray, regions: Regions) -> IntArray:
        """Complete accumulators to the output's type; ``regions`` holds the completion operands.

        Here accumulators are what is stored already.
        """
        return acc

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        """Return the least and greatest value that accumulators can hold, whatever the input and
        whichever of the atoms they hold so far; here, that the output's type can hold."""
        dtype = tensors[self.output].dtype
        return dtype.minimum, dtype.maximum

    def overflow(self, tensors: Tensors, constants: Constants) -> str:
        """Return how its sums leave the 32 bits that C computes in; "" if they do not."""
        return overflow(PowerOfTwo(), self.partial_sums(tensors, constants))

    def atoms(self, tensors: Tensors) -> int:
        """Products (or compared values) in one output element, padding included."""
        return sum(prod(w.count for w in term.operands[0].windows) for term in self.terms(tensors))

    def macs(self, tensors: Tensors) -> int:
        """Multiply–accumulates of one frame, padding included; 0 where nothing is multiplied."""
        products = any(len(term.operands) > 1 for term in self.terms(tensors))
        return tensors[self.output].size * self.atoms(tensors) if products else 0


def _same_place(operand: Operand, shape: tuple[int, ...]) -> bool:
    """Output element (i, j, …) reads element (i, j, …) and no other."""
    return len(operand.windows) == len(shape) and all(
        window == Window(axis) or (extent == 1 and window == Window(None))
        for axis, (window, extent) in enumerate(zip(operand.windows, shape, strict=True))
    )


Clip = tuple[int, int] | None
"""Stored integers that a fused activation lets through; None for all of the output's type."""


def limits(target: Tensor, clip: Clip) -> tuple[int, int]:
    """Return the least and greatest integer that ``target`` may hold."""
    low, high = clip or (target.dtype.minimum, target.dtype.maximum)
    return max(low, target.dtype.minimum), min(high, target.dtype.maximum)


def clipped_to(target: Tensor, clip: Clip, values: IntArray) -> IntArray:
    """``values`` (before the zero point) as ``target`` stores them."""
    return np.clip(values + target.zero_point, *limits(target, clip))


def product_sums(weights: IntArray, source: Tensor) -> IntArray:
    """(channels, 2): the least and greatest of any part of ``sum(weights[c] * (x - zero_point))``.

    Each product lies between its values for the least and the greatest input; the negative
    (positive) ones alone give the least (greatest) part. ``weights``: (channels, …).
    """
    flat = weights.reshape(len(weights), -1)
    least = min(source.dtype.minimum - source.zero_point, 0)
    greatest = max(source.dtype.maximum - source.zero_point, 0)
    some = range(0, len(flat), max(1, AT_ONCE // flat.shape[1]))
    parts = (np.maximum(flat[n : n + some.step], 0) for n in some)
    positive = np.concatenate([part.sum(axis=1, dtype=np.int64) for part in parts])
    negative = flat.sum(axis=1, dtype=np.int64) - positive
    low, high = positive * least + negative * greatest, positive * greatest + negative * least
    return np.stack([low, high], axis=1)


def windowed(region: BoxValues, box: Box, fill: int) -> IntArray:
    """Return the values of the unclipped ``box``, ``fill`` where ``region`` does not reach.

    Shape of the result: (n, extents of ``box``).
    """
    extents = [stop - start for start, stop in box]
    result = np.full([len(region.values), *extents], fill, dtype=np.int64)
    target, source = [slice(None)], [slice(None)]
    for (low, high), (start, stop) in zip(box, region.box, strict=True):
        first, last = max(low, start), max(max(low, start), min(high, stop))
        target.append(slice(first - low, last - low))
        source.append(slice(first - start, last - start))
    result[tuple(target)] = region.values[tuple(source)]
    return result
