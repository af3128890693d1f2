"""Small int8 networks with random weights, grown operator by operator, for the tests of passes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.lookup import Lookup
from pipeline.graph.operators.pad import Pad
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.operators.reshape import Reshape
from pipeline.graph.requant import FixedPoint, Mean
from pipeline.graph.tensor import DType, IntArray, Tensor

I8, I32 = DType.parse("int8"), DType.parse("int32")


@dataclass
class Network:
    """Grows operator by operator; ``last`` is the tensor made last."""

    rng: np.random.Generator
    shape: tuple[int, int, int] = (6, 5, 3)
    last: str = "x"
    tensors: dict[str, Tensor] = field(default_factory=dict)
    constants: dict[str, IntArray] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tensors["x"] = Tensor("x", self.shape, I8, (0.1,), self.zero())

    @property
    def here(self) -> tuple[int, ...]:
        return self.tensors[self.last].shape

    @property
    def activations(self) -> list[str]:
        return ["x", *(op.output for op in self.operators)]

    def zero(self) -> int:
        """A zero point."""
        return int(self.rng.choice([0, self.rng.integers(-20, 20)]))

    def append(self, op: Operator, same: bool, **quantization: Any) -> Network:
        """``op``, whose output has its input's quantization (``same``) or another."""
        source = self.tensors[op.inputs[0] if op.inputs else op.parameters[0]]
        shape = op.infer(self.tensors)
        tensor = replace(source, name=op.output, shape=shape)
        if not same:
            tensor = replace(tensor, **{"zero_point": self.zero(), **quantization})
        self.tensors[op.output] = tensor
        self.operators.append(op)
        self.last = op.output
        return self

    def name(self, kind: str) -> str:
        return f"{kind}{len(self.operators)}"

    def constant(self, name: str, values: IntArray, dtype: DType = I8) -> str:
        self.tensors[name] = Tensor(name, values.shape, dtype)
        self.constants[name] = values
        return name

    def parameters(self, name: str, shape: tuple[int, ...], dead: float) -> tuple[str, str]:
        """Weights of which a share ``dead`` of rows and of columns is zero."""
        weights = self.rng.integers(-127, 128, shape)
        weights[self.rng.random(shape[0]) < dead] = 0
        if shape[-1] > 1:
            weights[..., self.rng.random(shape[-1]) < dead] = 0
        bias = self.rng.integers(-3000, 3000, shape[0])
        held = self.constant(f"{name}.weight", weights), self.constant(f"{name}.bias", bias, I32)
        return held

    def requant(self, channels: int, taps: int) -> FixedPoint:
        """Factors that bring a sum of ``taps`` products to a few times int8's range."""
        return FixedPoint.of((self.rng.uniform(0.002, 0.02, channels) / taps**0.5).tolist())

    def conv(
        self,
        channels: int,
        kernel: int | tuple[int, int] = 3,
        groups: int = 1,
        dead: float = 0.4,
        **options: Any,
    ) -> Network:
        name = self.name("conv")
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        depth = self.here[2] // groups
        parameters = self.parameters(name, (channels, height, width, depth), dead)
        fields = {"requant": self.requant(channels, height * width * depth), **options}
        return self.append(
            Conv2d(name, (self.last,), name, parameters, groups=groups, **fields), same=False
        )

    def depthwise(self, times: int = 1, dead: float = 0.4, **options: Any) -> Network:
        return self.conv(self.here[2] * times, 2, self.here[2], dead, **options)

    def dense(self, outputs: int, dead: float = 0.4) -> Network:
        name = self.name("dense")
        parameters = self.parameters(name, (outputs, *self.here), dead)
        requant = self.requant(outputs, int(np.prod(self.here)))
        return self.append(Dense(name, (self.last,), name, parameters, requant=requant), same=False)

    def pad(self, *around: tuple[int, int]) -> Network:
        name = self.name("pad")
        return self.append(Pad(name, (self.last,), name, padding=around), same=True)

    def pool(self, average: bool) -> Network:
        name = self.name("pool")
        kind, fields = (AveragePool2d, {"requant": Mean()}) if average else (MaxPool2d, {})
        op = kind(name, (self.last,), name, kernel=(2, 2), stride=(1, 2), **fields)
        return self.append(op, same=True)

    def lookup(self, same: bool = False) -> Network:
        name, dtype = self.name("lookup"), self.tensors[self.last].dtype
        table = tuple(self.rng.integers(dtype.minimum, dtype.maximum + 1, 256).tolist())
        return self.append(Lookup(name, (self.last,), name, table=table), same)

    def reshape(self, *shape: int) -> Network:
        name = self.name("reshape")
        return self.append(Reshape(name, (self.last,), name, shape=shape), same=True)

    def flat(self) -> Network:
        return self.reshape(int(np.prod(self.here)))

    def add(self, first: str, second: str = "", **options: Any) -> Network:
        """Of ``first`` and ``second``, or the tensor made last."""
        name, requant = self.name("add"), FixedPoint.of([0.7])
        inputs, parameters = self.roles(operands := (first, second or self.last))
        op = Add(
            name, inputs, name, parameters, operands=operands,
            operand_requants=(requant, requant), requant=FixedPoint.of([1.2 / 2**20]), **options,
        )  # fmt: skip
        return self.append(op, same=False)

    def roles(self, operands: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(activations, constants)"""
        held = tuple(name for name in operands if name in self.constants)
        return tuple(name for name in operands if name not in held), held

    def graph(self) -> Graph:
        return Graph("network", self.tensors, tuple(self.operators), self.constants, "x", self.last)

    def images(self, number: int = 4) -> IntArray:
        return self.rng.integers(-128, 128, (number, *self.shape))
