"""Operators of a float graph that weigh or compare many elements for each that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pipeline.importers.deferred import F, torch
from pipeline.importers.float_graph import Node, Shape, checked_size
from pipeline.importers.float_nodes import (
    Floats,
    Pair,
    Weighted,
    channels_first,
    channels_last,
    tensor,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Resized(Node):
    """(h, w, c) -> (h', w', c): ``rows`` (h', h) and ``columns`` (w', w) weigh the old ones."""

    rows: Floats
    columns: Floats
    keeps: ClassVar[bool] = True

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        (height, rows), (width, columns) = self.rows.shape, self.columns.shape
        if len(shapes[0]) != 3 or shapes[0][:2] != (rows, columns):
            raise self.refuse(f"resizes images of {rows}x{columns}, not {list(shapes[0])}")
        return checked_size(self.where, (height, width, shapes[0][2]))

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        x = values[0]
        rows, columns = tensor(self.rows, x), tensor(self.columns, x)
        return torch.einsum("ab,nbcd,ec->naed", rows, x, columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class TransposedConvolution(Weighted):
    """(h, w, c_in) * (c_out, kh, kw, c_in / groups) -> (*size, c_out), ``before`` rows and columns
    left out at the top and on the left."""

    size: Pair
    before: Pair = (0, 0)
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    groups: int = 1

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        out, *_, depth = self.weights.shape
        if len(shapes[0]) != 3 or depth * self.groups != shapes[0][2] or out % self.groups:
            raise self.refuse(f"weights for {depth} channels, but the input is {list(shapes[0])}")
        if min(*self.stride, *self.dilation) < 1 or min(self.before) < 0:
            raise self.refuse(f"stride {self.stride}, dilation {self.dilation}: at least 1")
        return checked_size(self.where, (*self.size, out))

    def applied(self, x: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        out, *taps, depth = weights.shape
        grouped = weights.reshape(self.groups, out // self.groups, *taps, depth)
        kernels = grouped.permute(0, 4, 1, 2, 3).reshape(-1, out // self.groups, *taps)
        full = F.conv_transpose2d(
            channels_first(x),
            kernels,
            stride=self.stride,
            groups=self.groups,
            dilation=self.dilation,
        )
        (top, left), (height, width) = self.before, full.shape[2:]
        beyond = [left - width, top - height]
        ends = (-left, self.size[1] + beyond[0], -top, self.size[0] + beyond[1])
        return channels_last(F.pad(full, ends)) + bias


@dataclass(frozen=True, eq=False, kw_only=True)
class MatrixProduct(Node):
    """(r, n, k) * (r, k, m) -> (r, n, m); see the integer graph's ``MatMul``.

    Attributes:
        operands: which of the inputs each is.
    """

    operands: tuple[int, int]
    turned: tuple[bool, bool] = (False, False)
    clips: ClassVar[bool] = True

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        if any(len(shape) != 3 for shape in shapes):
            raise self.refuse(f"stacks of matrices are multiplied, not {list(map(list, shapes))}")
        with torch.device("meta"):
            made = self.compute([torch.empty(1, *shape) for shape in shapes])
        return checked_size(self.where, tuple(made.shape[1:]))

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        a, b = (
            values[n].transpose(-1, -2) if turned else values[n]
            for n, turned in zip(self.operands, self.turned, strict=True)
        )
        return a @ b


@dataclass(frozen=True, eq=False, kw_only=True)
class Normalized(Node):
    """Of three axes what lies along ``axes``, less its mean where ``centred``, over the root of the
    mean of its squares and ``epsilon``, or of their sum where ``total``."""

    axes: tuple[int, ...]
    centred: bool = True
    epsilon: float = 0.0
    total: bool = False

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        x, over = values[0], tuple(axis + 1 for axis in self.axes)
        x = x - x.mean(over, keepdim=True) if self.centred else x
        square = x.square().sum(over, True) if self.total else x.square().mean(over, True)
        return x * torch.rsqrt(square + self.epsilon)


@dataclass(frozen=True, eq=False, kw_only=True)
class Places(Node):
    """The index of the first greatest element along ``axis``, or of the first ``least``; the axis
    is left out."""

    axis: int
    least: bool = False

    def infer(self, shapes: Sequence[Shape]) -> Shape:
        return (*shapes[0][: self.axis], *shapes[0][self.axis + 1 :]) or (1,)

    def compute(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        found = (torch.argmin if self.least else torch.argmax)(values[0], self.axis + 1)
        return found.reshape(len(found), *self.infer([values[0].shape[1:]])).to(values[0].dtype)
