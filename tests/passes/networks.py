"""Small random int8 networks with what passes look for: pads, reshapes, channels of zeros."""

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
        self.tensors["x"] = Tensor("x", self.shape, I8, (0.1,), int(self.rng.integers(-20, 20)))

    @property
    def here(self) -> tuple[int, ...]:
        return self.tensors[self.last].shape

    def append(self, op: Operator, same: bool) -> Network:
        zero = int(self.rng.integers(-20, 20))
        source = self.tensors[self.last]
        shape = op.infer(self.tensors)
        tensor = replace(source, name=op.output, shape=shape)
        self.tensors[op.output] = tensor if same else replace(tensor, zero_point=zero)
        self.operators.append(op)
        self.last = op.output
        return self

    def _name(self, kind: str) -> str:
        return f"{kind}{len(self.operators)}"

    def parameters(self, name: str, shape: tuple[int, ...], dead: float) -> tuple[str, str]:
        """Weights of which a share ``dead`` of rows and of columns is zero."""
        weights = self.rng.integers(-127, 128, shape)
        weights[self.rng.random(shape[0]) < dead] = 0
        weights[..., self.rng.random(shape[-1]) < dead] = 0
        bias = self.rng.integers(-3000, 3000, shape[0])
        for suffix, array, dtype in (("weight", weights, I8), ("bias", bias, I32)):
            self.tensors[f"{name}.{suffix}"] = Tensor(f"{name}.{suffix}", array.shape, dtype)
            self.constants[f"{name}.{suffix}"] = array
        return f"{name}.weight", f"{name}.bias"

    def requant(self, channels: int) -> FixedPoint:
        return FixedPoint.of(self.rng.uniform(0.0005, 0.01, channels).tolist())

    def conv(self, channels: int, kernel: int = 3, dead: float = 0.4, **options: Any) -> Network:
        name = self._name("conv")
        parameters = self.parameters(name, (channels, kernel, kernel, self.here[2]), dead)
        op = Conv2d(name, (self.last,), name, parameters, requant=self.requant(channels), **options)
        return self.append(op, False)

    def depthwise(self, times: int = 1, dead: float = 0.4, **options: Any) -> Network:
        name, groups = self._name("depthwise"), self.here[2]
        parameters = self.parameters(name, (groups * times, 2, 2, 1), 0)
        self.constants[parameters[0]][self.rng.random(groups * times) < dead] = 0
        op = Conv2d(
            name, (self.last,), name, parameters, groups=groups,
            requant=self.requant(groups * times), **options,
        )  # fmt: skip
        return self.append(op, False)

    def dense(self, outputs: int, dead: float = 0.4) -> Network:
        name = self._name("dense")
        parameters = self.parameters(name, (outputs, *self.here), dead)
        op = Dense(name, (self.last,), name, parameters, requant=self.requant(outputs))
        return self.append(op, False)

    def pad(self) -> Network:
        name = self._name("pad")
        padding = tuple((int(a), int(b)) for a, b in self.rng.integers(0, 3, (2, 2)))
        return self.append(Pad(name, (self.last,), name, padding=(*padding, (0, 0))), True)

    def pool(self, average: bool) -> Network:
        name = self._name("pool")
        sizes: dict[str, Any] = {"kernel": (2, 2), "stride": (1, 2)}
        if average:
            return self.append(
                AveragePool2d(name, (self.last,), name, **sizes, requant=Mean()), True
            )
        return self.append(MaxPool2d(name, (self.last,), name, **sizes), True)

    def lookup(self) -> Network:
        name = self._name("lookup")
        table = tuple(self.rng.integers(-128, 128, 256).tolist())
        return self.append(Lookup(name, (self.last,), name, table=table), False)

    def flat(self) -> Network:
        name = self._name("flat")
        size = int(np.prod(self.here))
        return self.append(Reshape(name, (self.last,), name, shape=(size,)), True)

    def add(self, other: str) -> Network:
        name, requant = self._name("add"), FixedPoint.of([0.7])
        op = Add(
            name, (other, self.last), name, operands=(other, self.last),
            operand_requants=(requant, requant), requant=FixedPoint.of([1.2 / 2**20]),
        )  # fmt: skip
        return self.append(op, False)

    def graph(self) -> Graph:
        return Graph("network", self.tensors, tuple(self.operators), self.constants, "x", self.last)

    def images(self, number: int = 4) -> IntArray:
        return self.rng.integers(-128, 128, (number, *self.shape))


def random_network(seed: int) -> Network:
    """A handful of operators, then a dense layer, sometimes behind a reshape."""
    rng = np.random.default_rng(seed)
    network = Network(rng)
    for _ in range(int(rng.integers(2, 7))):
        small = min(network.here[:2]) < 4
        match int(rng.integers(7)):
            case 0:
                network.pad()
            case 1:
                network.lookup()
            case 2 if not small:
                network.pool(bool(rng.integers(2)))
            case 3 if not small:
                network.depthwise(int(rng.integers(1, 3)), padding=(1, 1, 0, 1))
            case 4:
                begin = network.last
                network.conv(network.here[2], padding=(1, 1, 1, 1)).add(begin)
            case _:
                padding = (1, 1, 1, 1) if small or rng.integers(2) else (0, 0, 0, 0)
                network.conv(int(rng.integers(1, 7)), padding=padding)
    if rng.integers(2):
        network.flat()
    network.dense(int(rng.integers(1, 6)))
    return network.dense(3) if rng.integers(2) else network
