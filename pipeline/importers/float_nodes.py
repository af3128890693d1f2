"""The operators of a float graph."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pipeline.importers.deferred import F, torch
from pipeline.importers.float_graph import Affine, FloatGraph, Node, Shape, checked_size
from pipeline.importers.functions import Composed, functions

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
Padding = tuple[int, int, int, int]
"""top, bottom, left, right"""


def channels_first(image: torch.Tensor) -> torch.Tensor:
    """(n, h, w, c) -> (n, c, h, w)"""
    return image.permute(0, 3, 1, 2)


def channels_last(image: torch.Tensor) -> torch.Tensor:
    """(n, c, h, w) -> (n, h, w, c)"""
    return image.permute(0, 2, 3, 1)


def padded(image: torch.Tensor, padding: Padding, value: float) -> torch.Tensor:
    """(n, c, h, w) with ``value`` around."""
    top, bottom, left, right = padding
    return F.pad(image, (left, right, top, bottom), value=value) if any(padding) else image


def tensor(values: Floats, like: torch.Tensor) -> torch.Tensor:
    return torch.tensor(np.ascontiguousarray(values), dtype=like.dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class Weighted(Node):
    """A node with weights (c_out, …) and biases (c_out,).

    ``steps`` are the real values of the weights' unit, one or c_out of them, where the source
    gives them: then ``weights`` are integer multiples.
    """

    clips: ClassVar[bool] = True

    weights: Floats
    bias: Floats
    steps: Floats | None = None

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        x = values[0]
        return self.applied(x, tensor(self.weights, x), tensor(self.bias, x))

    @abstractmethod
    def applied(self, x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """``compute`` with other weights and biases, of the same shapes; differentiable in all."""

    def scaled(self, factor: Floats, offset: Floats) -> Weighted:
        """Followed by ``factor * y + offset`` in each output channel."""
        shape = (-1,) + (1,) * (self.weights.ndim - 1)
        return replace(
            self,
            weights=self.weights * factor.reshape(shape),
            bias=self.bias * factor + offset,
            steps=None if self.steps is None or (factor <= 0).any() else self.steps * factor,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Convolution(Weighted):
    """(h, w, c_in) * (c_out, kh, kw, c_in / groups) -> (h', w', c_out)"""

    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    groups: int = 1

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        if len(shapes[0]) != 3 or self.weights.ndim != 4:
            raise self.refuse(f"a convolution of images is known, the input is {list(shapes[0])}")
        height, width, channels = shapes[0]
        out, rows, columns, depth = self.weights.shape
        if self.groups < 1 or depth * self.groups != channels or out % self.groups:
            raise self.refuse(
                f"weights for {depth} channels in {self.groups} groups, "
                f"but the input has {channels}"
            )
        if min(*self.stride, *self.dilation) < 1 or min(self.padding) < 0:
            raise self.refuse(
                f"stride {self.stride}, dilation {self.dilation}, padding {self.padding}: "
                "1 or more, 1 or more and 0 or more are known"
            )
        sizes = window_counts(
            (height, width), (rows, columns), self.stride, self.padding, self.dilation
        )
        if min(sizes) < 1:
            raise self.refuse(f"a {rows}x{columns} kernel is larger than {height}x{width}")
        return checked_size(self.where, (*sizes, out))

    def applied(self, x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        image, (top, bottom, left, right) = channels_first(x), self.padding
        around, stride = (top, left), self.stride
        points = weights.shape[1:3] == (1, 1) and stride != (1, 1)
        if (bottom, right) != around or points:
            image, around = padded(image, self.padding, 0.0), (0, 0)
        if points:  # oneDNN's gradients are wrong here (pipeline/training/float_only.py)
            image, stride = image[:, :, :: stride[0], :: stride[1]], (1, 1)
        kernels = channels_first(weights).contiguous()
        return channels_last(
            F.conv2d(image, kernels, bias, stride, around, self.dilation, self.groups)
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Linear(Weighted):
    """(input shape) * (c_out, input shape) -> (c_out,)"""

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        if self.weights.shape[1:] != shapes[0]:
            raise self.refuse(
                f"weights for {list(self.weights.shape[1:])}, but the input is {list(shapes[0])}"
            )
        return self.weights.shape[:1]

    def applied(self, x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return F.linear(x.flatten(1), weights.flatten(1), bias)


@dataclass(frozen=True, eq=False, kw_only=True)
class Pool(Node):
    """(h, w, c) -> (h', w', c). Padded pixels take no part."""

    kernel: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Padding = (0, 0, 0, 0)
    dilation: Pair = (1, 1)

    clips: ClassVar[bool] = True

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        if len(shapes[0]) != 3:
            raise self.refuse(f"pooling of images is known, the input is {list(shapes[0])}")
        height, width, channels = shapes[0]
        top, bottom, left, right = self.padding
        if min(*self.kernel, *self.stride, *self.dilation) < 1 or min(self.padding) < 0:
            raise self.refuse(f"kernel {self.kernel}, stride {self.stride}: 1 or more is needed")
        reach = [(n - 1) * apart + 1 for n, apart in zip(self.kernel, self.dilation, strict=True)]
        if max(top, bottom) >= reach[0] or max(left, right) >= reach[1]:
            raise self.refuse(f"some windows of {self.kernel} would lie wholly in the padding")
        size = height, width
        sizes = window_counts(size, self.kernel, self.stride, self.padding, self.dilation)
        if min(sizes) < 1:
            raise self.refuse(f"pooling {self.kernel} is larger than {height}x{width}")
        return checked_size(self.where, (*sizes, channels))


@dataclass(frozen=True, eq=False, kw_only=True)
class MaxPool(Pool):
    keeps: ClassVar[bool] = True

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        image = padded(channels_first(values[0]), self.padding, -np.inf)
        return channels_last(F.max_pool2d(image, self.kernel, self.stride, 0, self.dilation))


@dataclass(frozen=True, eq=False, kw_only=True)
class MinPool(MaxPool):
    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return -super().compute([-values[0]])


@dataclass(frozen=True, eq=False, kw_only=True)
class AveragePool(Pool):
    keeps: ClassVar[bool] = True

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        image = channels_first(values[0])
        total = F.avg_pool2d(padded(image, self.padding, 0.0), self.kernel, self.stride)
        if not any(self.padding):
            return channels_last(total)
        inside = padded(torch.ones_like(image[:1, :1]), self.padding, 0.0)
        return channels_last(total / F.avg_pool2d(inside, self.kernel, self.stride))


@dataclass(frozen=True, eq=False, kw_only=True)
class GlobalMean(Node):
    """(h, w, c) -> (1, 1, c), with a quantization of its own: a mean has a smaller range."""

    clips: ClassVar[bool] = True

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        if len(shapes[0]) != 3:
            raise self.refuse(f"a mean over h and w is known, the input is {list(shapes[0])}")
        return 1, 1, shapes[0][2]

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return values[0].mean((1, 2), keepdim=True)


@dataclass(frozen=True, eq=False, kw_only=True)
class Scale(Node):
    """``factor * x + offset`` with (c,) each: a stand-alone batch norm. Passes remove it."""

    factor: Floats
    offset: Floats

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        if self.factor.shape != shapes[0][-1:] or self.offset.shape != shapes[0][-1:]:
            raise self.refuse(f"scales {self.factor.shape}, but the input is {list(shapes[0])}")
        return shapes[0]

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        x = values[0]
        return x * tensor(self.factor, x) + tensor(self.offset, x)


@dataclass(frozen=True, eq=False, kw_only=True)
class Binary(Node):
    """Two activations, or one and ``constant`` of the same rank, elementwise with broadcast."""

    constant: Floats | None = None
    constant_given: Affine | None = None

    clips: ClassVar[bool] = True
    joins: ClassVar[str] = ""
    """What ``functions`` calls it."""

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        both = [*shapes, *([] if self.constant is None else [self.constant.shape])]
        try:
            return checked_size(self.where, tuple(np.broadcast_shapes(*both)))
        except ValueError:
            raise self.refuse(f"shapes {both[0]} and {both[1]} do not broadcast") from None

    def operands(self, values: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        if self.constant is None:
            return values[0], values[1]
        return values[0], tensor(self.constant, values[0])

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return functions()[self.joins](*self.operands(values))


@dataclass(frozen=True, eq=False, kw_only=True)
class Sum(Binary):
    joins: ClassVar[str] = "add"


@dataclass(frozen=True, eq=False, kw_only=True)
class Product(Binary):
    joins: ClassVar[str] = "multiply"


@dataclass(frozen=True, eq=False, kw_only=True)
class Slopes(Binary):
    """PReLU: the first operand, times the second where the first is negative."""

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        x, slope = self.operands(values)
        return torch.where(x >= 0, x, x * slope)


@dataclass(frozen=True, eq=False, kw_only=True)
class Concatenation(Node):
    axis: int
    keeps: ClassVar[bool] = True

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        first = shapes[0]
        rest = {shape[: self.axis] + shape[self.axis + 1 :] for shape in shapes}
        if not 0 <= self.axis < len(first) or len(rest) != 1:
            raise self.refuse(f"shapes {[list(s) for s in shapes]} cannot be concatenated")
        total = sum(shape[self.axis] for shape in shapes)
        return checked_size(self.where, (*first[: self.axis], total, *first[self.axis + 1 :]))

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return torch.cat(tuple(values), self.axis + 1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Padded(Node):
    """``padding``: (before, after) for each axis, of ``value``."""

    padding: tuple[Pair, ...]
    value: float = 0.0
    keeps: ClassVar[bool] = True

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        if len(self.padding) != len(shapes[0]) or min(min(pair) for pair in self.padding) < 0:
            raise self.refuse(f"padding {self.padding} of a tensor {list(shapes[0])}")
        sizes = zip(shapes[0], self.padding, strict=True)
        return checked_size(self.where, tuple(size + a + b for size, (a, b) in sizes))

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        around = [n for pair in reversed(self.padding) for n in pair]
        return F.pad(values[0], around, value=self.value)


@dataclass(frozen=True, eq=False, kw_only=True)
class Reshaped(Node):
    """The same elements, row-major."""

    shape: Shape
    keeps: ClassVar[bool] = True

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        if prod(shapes[0]) != prod(self.shape):
            raise self.refuse(f"{list(shapes[0])} cannot become {list(self.shape)}")
        return self.shape

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return values[0].reshape(-1, *self.shape)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rearranged(Node):
    """Elements in another order, as the integer graph's ``Rearrange`` has them.

    The index along input axis d is ``o[axes[d]] // repeats[d] * steps[d] + starts[d]``;
    ``shape`` is the output's."""

    shape: Shape
    axes: Shape
    starts: Shape
    steps: Shape
    repeats: Shape
    keeps: ClassVar[bool] = True

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        checked_size(self.where, self.shape)
        for axis, extent, found in zip(self.axes, shapes[0], self.indices, strict=True):
            if not (0 <= found[0] < extent and 0 <= found[-1] < extent):
                raise self.refuse(f"{list(shapes[0])} has not all of axis {axis}")
        return self.shape

    @property
    def indices(self) -> list[npt.NDArray[np.int64]]:
        """Along each input axis."""
        fields = zip(self.axes, self.starts, self.steps, self.repeats, strict=True)
        return [
            np.arange(self.shape[axis]) // repeat * step + start
            for axis, start, step, repeat in fields
        ]

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        result = values[0]
        for place, chosen in enumerate(self.indices):
            result = result.index_select(1 + place, torch.from_numpy(chosen))
        return result.permute(0, *(1 + self.axes.index(a) for a in range(len(self.shape))))


@dataclass(frozen=True, eq=False, kw_only=True)
class SoftmaxOver(Node):
    """Softmax over the last axis."""

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return values[0].softmax(-1)


@dataclass(frozen=True, eq=False, kw_only=True)
class LogSoftmaxOver(SoftmaxOver):
    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return values[0].log_softmax(-1)


@dataclass(frozen=True, eq=False, kw_only=True)
class Function(Node):
    """An elementwise function of one activation."""

    body: Composed

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        return self.body(values[0])


def scores(graph: FloatGraph) -> str:
    """Return the output, or what it is the softmax of."""
    last = next(node for node in graph.nodes if node.output == graph.output)
    return last.inputs[0] if isinstance(last, SoftmaxOver) else graph.output


def window_counts(
    size: Pair, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair = (1, 1)
) -> Pair:
    """Count the windows that fit in each direction; below 1 when none does."""
    rows, columns = (
        (extent + sum(around) - (taps - 1) * spread - 1) // step + 1
        for extent, taps, step, around, spread in zip(
            size, kernel, stride, (padding[:2], padding[2:]), dilation, strict=True
        )
    )
    return rows, columns
