"""Products of two activations as matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph import broadcast
from pipeline.graph.access import Operand, Term, Window
from pipeline.graph.families import Requantized
from pipeline.graph.operator import BoxValues, Clip, Constants, Tensors
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import Box, IntArray


@dataclass(frozen=True)
class MatMul(Requantized):
    """(r, n, k) * (r, k, m) -> (r, n, m): TFLite's int8 BATCH_MATMUL of two activations.

    Where ``turned``, an operand's last two axes are the other way round; r of one may be 1.
    """

    reading: ClassVar[tuple[str, ...]] = ("inputs", "parameters", "operands")

    operands: tuple[str, str] = ("", "")
    turned: tuple[bool, bool] = (False, False)
    requant: FixedPoint = FixedPoint((0,), (0,))
    clip: Clip = None

    def infer(self, tensors: Tensors) -> tuple[int, ...]:
        shapes = [tensors[name].shape for name in self.operands]
        if any(len(shape) != 3 for shape in shapes):
            raise ThimbleError(f"{self.name}: stacks of matrices are multiplied, not {shapes}")
        (r, n, k), (s, j, m) = (
            (shape[0], *(shape[:0:-1] if turned else shape[1:]))
            for shape, turned in zip(shapes, self.turned, strict=True)
        )
        if k != j or (r != s and min(r, s) > 1):
            raise ThimbleError(f"{self.name}: matrices {shapes} do not go together")
        return max(r, s), n, m

    def terms(self, tensors: Tensors) -> tuple[Term, ...]:
        found = list[Operand]()
        for name, turned, axis in zip(self.operands, self.turned, (1, 2), strict=True):
            shape = tensors[name].shape
            inner = 1 if turned == (axis == 1) else 2
            windows = [Window(0 if shape[0] > 1 else None), Window(axis), Window(axis)]
            windows[inner] = Window(None, shape[inner])
            found.append(Operand(name, tuple(windows)))
        return (Term(tuple(found)),)

    def partial_sums(self, tensors: Tensors, constants: Constants) -> tuple[int, int]:
        products = np.outer(*(broadcast.extremes(name, tensors) for name in self.operands))
        count = self.atoms(tensors)
        return int(products.min()) * count, int(products.max()) * count

    def accumulate(self, tensors: Tensors, out: Box, regions: Mapping[str, BoxValues]) -> IntArray:
        sides = list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]()
        for operand, turned in zip(self.terms(tensors)[0].operands, self.turned, strict=True):
            x = broadcast.centred(operand, tensors, out, regions)
            sides.append((x.swapaxes(-1, -2) if turned else x).astype(np.float64))
        return np.asarray(sides[0] @ sides[1], np.int64)  # exact below 2**53
