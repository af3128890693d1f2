"""Correspondence between the elements of a tensor in our layout and in the source's.

PyTorch and ONNX have (1, c, h, w); here it is (h, w, c). Flattening, transposing and reshaping in
the source only rename elements: a ``Value`` keeps the renaming, and only where an operator needs
another order of the elements than memory has is it an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError
from pipeline.importers.float_graph import Shape

Index = npt.NDArray[np.int64]


class Moves(ThimbleError):
    """Elements would have to change their order in memory."""


@dataclass(frozen=True, eq=False)
class Value:
    """``index[i]`` is the row-major position in ``tensor`` of the source's element ``i``.

    ``index`` has the source's shape, batch axis included.
    """

    tensor: str
    index: Index

    @property
    def shape(self) -> Shape:
        return self.index.shape

    @property
    def image(self) -> Value:
        """A signal (1, c, l) as an image of height 1; whatever else as it is."""
        return self.reshape((*self.shape[:2], 1, *self.shape[2:])) if self.index.ndim == 3 else self

    def reshape(self, shape: Shape) -> Value:
        return Value(self.tensor, self.index.reshape(shape))

    def transpose(self, axes: Shape) -> Value:
        return Value(self.tensor, self.index.transpose(axes))


def ours(shape: Shape) -> Shape:
    """Return the shape here of a source tensor: no batch axis, channels last for images; the first
    of more than three axes are one."""
    if len(shape) == 4 and shape[0] == 1:
        return shape[2], shape[3], shape[1]
    if len(shape) > 4:
        return prod(shape[:-2]), shape[-2], shape[-1]
    return shape[1:] if len(shape) > 1 and shape[0] == 1 else shape or (1,)


@lru_cache(maxsize=64)
def usual(shape: Shape) -> Index:
    """Return the index of a source tensor that is stored in its usual layout here."""
    order = np.arange(prod(shape), dtype=np.int64)
    if len(shape) == 4 and shape[0] == 1:
        return order.reshape(1, *ours(shape)).transpose(0, 3, 1, 2)
    return order.reshape(shape)


def is_usual(value: Value) -> bool:
    """Check whether memory has the elements in the usual order of the source's shape."""
    known = usual(value.shape)
    return value.index is known or bool((value.index == known).all())


def scattered(values: npt.NDArray[np.float64], index: Index) -> npt.NDArray[np.float64]:
    """``values`` in the source's order -> flat, in memory's. Leading axes are kept:
    (…, *index.shape) -> (…, size)."""
    lead = values.shape[: values.ndim - index.ndim]
    result = np.empty((*lead, index.size))
    result[..., index.reshape(-1)] = values.reshape(*lead, -1)
    return result
