"""Chains of few bits, built by hand or drawn at random, and a board for the strategies' tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.placing import Rearrange
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import FixedPoint, PowerOfTwo
from pipeline.graph.tensor import DType, IntArray, Tensor
from pipeline.hardware import Hardware, Power, Toolchain
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone, InPlace, Replace, SingleTranspose
from pipeline.strategies.ordinary import Ordinary

IN_PLACE: tuple[type[InPlace], ...] = (Replace, SingleTranspose, Herringbone)
STRATEGIES: tuple[type[Strategy], ...] = (Ordinary, *IN_PLACE)


@dataclass
class Chain:
    """Builds a chain of operators with random constants."""

    shape: tuple[int, ...]
    dtype: str = "uint4"
    seed: int = 0
    source: str = "image"
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, IntArray] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.last = self.tensor(self.source, self.shape, self.dtype)

    def tensor(self, name: str, shape: tuple[int, ...], dtype: str) -> str:
        self.tensors[name] = Tensor(name, shape, DType.parse(dtype))
        return name

    def constant(self, name: str, shape: tuple[int, ...], dtype: str) -> str:
        kind = DType.parse(dtype)
        self.constants[name] = self.rng.integers(kind.minimum, kind.maximum + 1, shape)
        return self.tensor(name, shape, dtype)

    def add(self, op: Operator, dtype: str) -> Chain:
        self.tensor(op.output, op.infer(self.tensors), dtype)
        self.operators.append(op)
        self.last = op.output
        return self

    def conv(
        self,
        name: str,
        channels: int,
        kernel: int | tuple[int, int] = 3,
        dtype: str = "uint4",
        groups: int = 1,
        weights: str = "int4",
        shifts: tuple[int, int] = (1, 5),
        **options: object,
    ) -> Chain:
        size = (kernel, kernel) if isinstance(kernel, int) else kernel
        depth = self.tensors[self.last].shape[2] // groups
        weight = self.constant(f"{name}.weight", (channels, *size, depth), weights)
        bias = self.constant(f"{name}.bias", (channels,), "int8")
        op = Conv2d(
            name, (self.last,), name, (weight, bias), groups=groups,
            requant=PowerOfTwo(*shifts),
            **options,  # type: ignore[arg-type]
        )  # fmt: skip
        return self.add(op, dtype)

    def plus(self, name: str, other: str) -> Chain:
        """``other`` and what is last added up."""
        dtype, one = str(self.tensors[other].dtype), FixedPoint.of([0.5])
        op = Add(
            name, (other, self.last), name, operands=(other, self.last),
            operand_requants=(one, one), requant=FixedPoint.of([1 / (1 << 20)]),
        )  # fmt: skip
        return self.add(op, dtype)

    def middle(self, name: str, edge: int) -> Chain:
        """Cut ``edge`` pixels off each side of what is last."""
        source = self.tensors[self.last]
        rows, columns, channels = source.shape
        op = Rearrange(
            name, (self.last,), name, shape=(rows - 2 * edge, columns - 2 * edge, channels),
            axes=(0, 1, 2), starts=(edge, edge, 0), steps=(1, 1, 1), repeats=(1, 1, 1),
        )  # fmt: skip
        return self.add(op, str(source.dtype))

    def average(self, name: str, shift: int = 6, dtype: str = "uint4", **options: object) -> Chain:
        requant = PowerOfTwo(0, shift, "floor")
        return self.add(AveragePool2d(name, (self.last,), name, requant=requant, **options), dtype)  # type: ignore[arg-type]

    def maximum(self, name: str, **options: object) -> Chain:
        dtype = str(self.tensors[self.last].dtype)
        return self.add(MaxPool2d(name, (self.last,), name, **options), dtype)  # type: ignore[arg-type]

    def dense(
        self, name: str, outputs: int, dtype: str = "int16", weights: str = "int4",
        shifts: tuple[int, int] = (2, 0),
    ) -> Chain:  # fmt: skip
        shape = outputs, *self.tensors[self.last].shape
        weight = self.constant(f"{name}.weight", shape, weights)
        bias = self.constant(f"{name}.bias", (outputs,), "int8")
        op = Dense(name, (self.last,), name, (weight, bias), requant=PowerOfTwo(*shifts))
        return self.add(op, dtype)

    def graph(self) -> Graph:
        operators = tuple(self.operators)
        return Graph("chain", self.tensors, operators, self.constants, (self.source,), (self.last,))

    def frame(self) -> IntArray:
        kind = self.tensors[self.source].dtype
        return self.rng.integers(kind.minimum, kind.maximum + 1, self.shape)


def mnist() -> Chain:
    """The paper's network (TRUTHS: 94,928 MACs) with random weights."""
    chain = Chain((28, 28, 1), "uint8").average("pooled")
    for name, channels in (("conv1", 5), ("conv2", 8), ("conv3", 11)):
        chain.conv(name, channels)
    return chain.maximum("pool").dense("logits", 10)


SIZES = (1, 1, 2, 3, 5, 7, 8, 11, 13, 16, 23)


def drawn(rng: np.random.Generator, straight: bool = False) -> Chain:
    """A random chain of few bits; ``straight``: without slices and sums."""

    def one(values: Sequence[Any]) -> Any:
        return values[int(rng.integers(len(values)))]

    shape = tuple(one(SIZES[:7]) for _ in range(2))
    net = Chain((*shape, int(rng.integers(1, 4))), one(("uint4", "uint8", "int8")))
    net.rng = rng
    narrow = ("uint4", "uint4", "uint4", "int8", "uint8")
    for n in range(int(rng.integers(1, 5))):
        before, (height, width, depth) = net.last, net.tensors[net.last].shape
        kernel = int(rng.integers(1, min(3, height) + 1)), int(rng.integers(1, min(3, width) + 1))
        stride, kind = (int(rng.integers(1, 3)), int(rng.integers(1, 3))), one(narrow)
        match rng.integers(7):
            case 0:
                net.average(f"t{n}", 2, kind, kernel=kernel, stride=one((kernel, stride)))
            case 1:
                net.maximum(f"t{n}", kernel=kernel, stride=stride)
            case 2 if min(height, width) > 2 and not straight:
                net.middle(f"t{n}", 1)
            case 3 if not straight:
                dtype = str(net.tensors[before].dtype)
                net.conv(f"t{n}", depth, (1, 1), dtype).plus(f"sum{n}", before)
            case _:
                groups = one((1, 1, depth))
                padding = tuple(int(rng.integers(0, 2)) for _ in range(4))
                net.conv(
                    f"t{n}", groups * int(rng.integers(1, 4)), kernel, kind, groups=groups,
                    stride=stride, padding=padding,
                )  # fmt: skip
    if rng.random() < 0.85:
        net.dense("dense", int(rng.integers(1, 6)), one(("int16", "int8")))
    return net


def board(streams: bool = True, weights_in: str = "sram", sram_bytes: int = 1 << 20) -> Hardware:
    return Hardware(
        *("test", "Test board", "host", "none", 1, sram_bytes, 1 << 20, weights_in, streams, 0, 1),
        toolchain=Toolchain("cc", "gcc"), power=Power(5.0, 1.0, 1.0, "none"), simulator="none",
    )  # fmt: skip
