"""Tensors of one quantization side by side along an axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.families import Placing
from pipeline.graph.operator import BoxValues, Tensors, windowed
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class Concat(Placing):
    """Every output element is an element of one input and padding of all others."""

    axis: int = 2

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        if len(set(self.inputs)) != len(self.inputs):
            raise ThimbleError(f"{self.name}: a tensor is concatenated with itself")
        parts = [tensors[name] for name in self.inputs]
        known = [*parts, *([tensors[self.output]] if self.output in tensors else [])]
        if len({(str(t.dtype), t.scale, t.zero_point) for t in known}) > 1:
            raise ThimbleError(f"{self.name}: what is concatenated differs in type or quantization")
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

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        zero = tensors[self.output].zero_point
        total = np.zeros((1, *(stop - start for start, stop in out)), dtype=np.int64)
        for term in self.terms(tensors):
            operand = term.operands[0]
            total = total + windowed(regions[operand.tensor], operand.region(out), zero) - zero
        return total


@lru_cache(1 << 10)
def _from(base: int, axis: int, rank: int) -> tuple[Window, ...]:
    """Return the windows of a tensor that begins at ``base`` of the ``axis``."""
    return tuple(Window(each, offset=-base * (each == axis)) for each in range(rank))
