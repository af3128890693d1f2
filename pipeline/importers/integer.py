"""``model=integer``: a chain of layers in integers, trained elsewhere: nothing is rounded again.

docs/integer-weights.md is its format: int4 weights, biases and shifts by name in an ``.npz``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import given
from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType, IntArray, Tensor
from pipeline.importers.base import Imported

KEY = "model.path"
PIXEL, ACTIVATION, WEIGHT, BIAS, OUTPUT = map(
    DType.parse, ("uint8", "uint4", "int4", "int8", "int16")
)
POOLS = (1, 2, 4, 8)
MOST_SHIFT = 15


@dataclass(frozen=True)
class Integer(Imported):
    """A chain from an image of bytes: pooled to 4 bits, then the layers of the file."""

    def graph(self) -> Graph:
        """
        Raises:
            ThimbleError: an array is missing, has another shape or another range than the format
                says, or layers do not go together; a layer of a kind that it has not.
        """
        self.content()  # says what is wrong with the path
        return _Chain(given.read(Path(self.path), KEY)).graph(Path(self.path).stem)


@dataclass
class _Chain:
    arrays: Arrays
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, IntArray] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    last: str = "image"

    def graph(self, name: str) -> Graph:
        names, kinds = self._words("layers"), self._words("kinds")
        own = {*names} - {"image", "pooled"}
        if not names or len(names) != len(kinds) or len(own) != len(names):
            raise ThimbleError(
                f"{KEY}: layers has {len(names)} names, kinds {len(kinds)}: give every layer a "
                "name of its own, other than image and pooled, and a kind"
            )
        image = tuple(self._integers("input", 3, 1, 1 << 16))
        self.tensors["image"] = Tensor("image", image, PIXEL, (1 / 256,)).spread((0.0, 255.0))
        self._pool()
        makers: dict[str, Callable[[str, bool], tuple[Operator, DType]]] = {
            "conv": self._conv,
            "dense": self._dense,
            "maxpool": self._maximum,
        }
        for number, (layer, kind) in enumerate(zip(names, kinds, strict=True), 1):
            if kind not in makers:
                raise ThimbleError(
                    f"{KEY}: {layer} is a {kind}, which is not supported; have "
                    f"{', '.join(makers)} (docs/integer-weights.md)"
                )
            self._append(*makers[kind](layer, number == len(names)))
        return Graph(
            name, self.tensors, tuple(self.operators), self.constants, ("image",), (self.last,)
        )

    def _append(self, op: Operator, dtype: DType) -> None:
        self.tensors[op.output] = Tensor(op.output, op.infer(self.tensors), dtype)
        self.operators.append(op)
        self.last = op.output

    def _pool(self) -> None:
        (size,) = self._integers("pool", 1, 1, 8)
        if size not in POOLS:
            raise ThimbleError(f"{KEY}: pool is {size}, and has to be one of {POOLS}")
        shift = 2 * (size.bit_length() - 1) + PIXEL.bits - ACTIVATION.bits
        average = AveragePool2d(
            "pool", ("image",), "pooled", kernel=(size, size), stride=(size, size),
            requant=PowerOfTwo(0, shift, "floor"),
        )  # fmt: skip
        self._append(average, ACTIVATION)

    def _conv(self, layer: str, last: bool) -> tuple[Operator, DType]:
        parameters = self._parameters(layer, 4)
        stride, dilation = (self._pair(layer, kind, 1) for kind in ("stride", "dilation"))
        top, bottom, left, right = self._integers(f"{layer}.padding", 4, 0, 255, (0,) * 4)
        conv = Conv2d(
            layer, (self.last,), layer, parameters, stride=stride, dilation=dilation,
            padding=(top, bottom, left, right), requant=self._shifts(layer),
        )  # fmt: skip
        return conv, OUTPUT if last else ACTIVATION

    def _dense(self, layer: str, last: bool) -> tuple[Operator, DType]:
        parameters = self._parameters(layer, 1 + len(self.tensors[self.last].shape))
        dense = Dense(layer, (self.last,), layer, parameters, requant=self._shifts(layer))
        return dense, OUTPUT if last else ACTIVATION

    def _maximum(self, layer: str, last: bool) -> tuple[Operator, DType]:
        kernel = self._pair(layer, "kernel", 2)
        pool = MaxPool2d(
            layer, (self.last,), layer, kernel=kernel, stride=self._pair(layer, "stride", kernel[0])
        )
        return pool, self.tensors[self.last].dtype

    def _parameters(self, layer: str, axes: int) -> tuple[str, str]:
        weights = self._within(f"{layer}.weight", WEIGHT)
        biases = self._within(f"{layer}.bias", BIAS)
        if weights.ndim != axes or biases.shape != weights.shape[:1]:
            raise ThimbleError(
                f"{KEY}: {layer}.weight has shape {weights.shape}, {layer}.bias {biases.shape}; "
                f"wanted are {axes} axes, outputs first, and a bias for each output"
            )
        for kind, values, dtype in (("weight", weights, WEIGHT), ("bias", biases, BIAS)):
            name = f"{layer}.{kind}"
            self.tensors[name] = Tensor(name, values.shape, dtype)
            self.constants[name] = values
        return f"{layer}.weight", f"{layer}.bias"

    def _within(self, name: str, dtype: DType) -> IntArray:
        values = self._array(name)
        low, high = int(values.min(initial=0)), int(values.max(initial=0))
        if low < dtype.minimum or high > dtype.maximum:
            raise ThimbleError(
                f"{KEY}: {name} holds {low}…{high}, {dtype} is {dtype.minimum}…{dtype.maximum}"
            )
        return np.ascontiguousarray(values.astype(np.int64))

    def _shifts(self, layer: str) -> PowerOfTwo:
        left, right = self._integers(f"{layer}.shift", 2, 0, MOST_SHIFT)
        return PowerOfTwo(left, right)

    def _pair(self, layer: str, kind: str, default: int) -> tuple[int, int]:
        rows, columns = self._integers(f"{layer}.{kind}", 2, 1, 255, (default, default))
        return rows, columns

    def _integers(
        self, name: str, count: int, low: int, high: int, default: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        if name not in self.arrays and default:
            return default
        values = self._array(name).reshape(-1)
        if len(values) != count or not low <= values.min() <= values.max() <= high:
            raise ThimbleError(
                f"{KEY}: {name} is {values.tolist()[:8]}; wanted: {count} of {low}…{high}"
            )
        return tuple(map(int, values))

    def _array(self, name: str) -> IntArray:
        values = _found(self.arrays, name)
        if values.dtype.kind not in "iu":
            raise ThimbleError(f"{KEY}: {name} holds {values.dtype}, integers are wanted")
        if values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max:
            raise ThimbleError(f"{KEY}: {name} holds {values.max()}, which is no weight")
        return values

    def _words(self, name: str) -> list[str]:
        values = _found(self.arrays, name)
        if values.dtype.kind != "U" or values.ndim != 1:
            raise ThimbleError(f"{KEY}: {name} holds {values.dtype}, a list of words is wanted")
        return [str(value) for value in values]


def _found(arrays: Arrays, name: str) -> np.ndarray[Any, Any]:
    if name not in arrays:
        raise ThimbleError(f"{KEY}: {name} is missing; the format is in docs/integer-weights.md")
    return arrays[name]
