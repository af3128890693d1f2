"""Integer types and tensors."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError

IntArray = npt.NDArray[np.int64]
Box = tuple[tuple[int, int], ...]
"""A half-open range ``(start, stop)`` for each axis."""


@dataclass(frozen=True)
class DType:
    """A two's-complement or unsigned integer of ``bits`` bits; 4-bit types are first class."""

    bits: int
    signed: bool

    @classmethod
    def parse(cls, name: str) -> DType:
        match = re.fullmatch(r"(u?)int(4|8|16|32)", name)
        if match is None:
            raise ThimbleError(f"unknown integer type {name!r}: use int or uint of 4, 8, 16 or 32")
        return cls(int(match[2]), not match[1])

    def __str__(self) -> str:
        return f"{'' if self.signed else 'u'}int{self.bits}"

    @property
    def stored(self) -> np.dtype[np.integer[Any]]:
        """The narrowest numpy type that holds its values: 4 bits take 8."""
        return np.dtype(f"{'' if self.signed else 'u'}int{max(8, self.bits)}")

    @property
    def minimum(self) -> int:
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def maximum(self) -> int:
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    def clip(self, values: IntArray) -> IntArray:
        return np.clip(values, self.minimum, self.maximum)


@dataclass(frozen=True)
class Tensor:
    """A named array of one frame (no batch axis); images are (h, w, c).

    The real value of a stored integer ``q`` is ``scale * (q - zero_point)``; ``scale`` has one
    entry, or one for each channel of the last axis.

    Attributes:
        raw: of an input: the real values that 0 and 255 of the data mean; None: the data's value
            is the stored one, 128 less where that is signed. No code depends on it.
        outside: of an input: scale and zero point (perhaps a fraction) for who uses the network;
            None: as above. Others where operators include a scaling. Only headers depend on it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    scale: tuple[float, ...] = (1.0,)
    zero_point: int = 0
    raw: tuple[float, float] | None = field(default=None, repr=False)
    outside: tuple[float, float] | None = field(default=None, repr=False)

    @property
    def units(self) -> tuple[float, float]:
        """Scale and zero point for whoever uses the network."""
        return self.outside or (self.scale[0], self.zero_point)

    def quantized(self, real: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the nearest integers, of halves those farther from 0, as ``nn_quantize`` in C."""
        low, high = self.dtype.minimum, self.dtype.maximum
        scale, zero = (np.float32(each) for each in self.units)
        with np.errstate(over="ignore"):
            steps = np.nan_to_num(np.asarray(real, np.float32) / scale + zero, nan=low)
        nearest: npt.NDArray[Any] = np.trunc(steps + np.copysign(np.float32(0.5), steps))
        return nearest.clip(low, high).astype(self.dtype.stored)

    def real(self, stored: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the real values that integers stand for."""
        scale, zero = self.units
        return scale * (np.asarray(stored, np.float64) - zero)

    def spread(self, limits: tuple[float, float]) -> Tensor:
        """Return the tensor whose least and greatest integer mean ``limits`` outside."""
        size, steps = limits[1] - limits[0], self.dtype.maximum - self.dtype.minimum
        return replace(self, outside=(size / steps, self.dtype.minimum - limits[0] * steps / size))

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nibbles(self) -> int:
        return self.size * self.dtype.bits // 4

    @property
    def bytes(self) -> float:
        """Bytes when packed: 434.5 is a possible answer for 4-bit elements."""
        return self.size * self.dtype.bits / 8

    @property
    def box(self) -> Box:
        return tuple((0, extent) for extent in self.shape)


def within_int8(name: str, weights: IntArray) -> tuple[IntArray, int]:
    """Return integers of 8 bits, and their zero point: 0, if ``weights`` need no other.

    Raises:
        ThimbleError: the weights ``name`` span more than 255.
    """
    low, high = (int(end) for end in (weights.min(initial=0), weights.max(initial=0)))
    zero = 0 if low >= -128 and high <= 127 else -128 - low
    if high + zero > 127 or not -128 <= zero <= 127:
        raise ThimbleError(f"{name} has weights of {low} to {high}, which are no 8 bits")
    return weights + zero, zero


def beside(tensors: Container[str], tensor: str, word: str) -> str:
    """``tensor.word``, for something of ``tensor``; the name of none of ``tensors``."""
    name = f"{tensor}.{word}"
    while name in tensors:
        name += "_"
    return name
