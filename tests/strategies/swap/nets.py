"""Chains of the kinds that strategy swap takes: SwapNN's three networks without weights (zeros that
take no memory), random small ones with, and a board with a card."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.operators.dense import Dense
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import FixedPoint, Mean
from pipeline.graph.tensor import DType, IntArray, Tensor
from pipeline.hardware import Card, Hardware
from pipeline.plan.rates import Rates, Transfers
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.lower import Notes, laid_at
from pipeline.schedules.swapped import Swapped
from pipeline.search.swap import best, swapnn
from pipeline.search.view.tiles import layers
from tests.strategies import chains, nets
from tests.strategies.proving import exact

INT8, INT32 = DType(8, True), DType(32, True)
SCALE = FixedPoint.of(np.array([0.01]))


@dataclass
class Chain:
    """Each method adds a layer and returns the chain. Its weights are zeros."""

    name: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        self.tensors = {"input": Tensor("input", self.shape, INT8)}
        self.constants: dict[str, IntArray] = {}
        self.operators: list[Operator] = []
        self.last = "input"

    @property
    def shape_now(self) -> tuple[int, ...]:
        return self.tensors[self.last].shape

    def constant(self, name: str, shape: tuple[int, ...], dtype: DType) -> str:
        self.tensors[name] = Tensor(name, shape, dtype)
        self.constants[name] = np.broadcast_to(np.int64(0), shape)
        return name

    def add(self, kind: type[Operator], weights: tuple[int, ...] = (), **options: object) -> Chain:
        name = f"{kind.__name__.lower()}{len(self.operators)}"
        parameters: tuple[str, ...] = ()
        if weights:
            weight = self.constant(f"{name}.w", weights, INT8)
            parameters = (weight, self.constant(f"{name}.b", weights[:1], INT32))
        op = kind(name, (self.last,), name, parameters, **options)  # type: ignore[arg-type]
        self.tensors[name] = Tensor(name, op.infer(self.tensors), INT8)
        self.operators.append(op)
        self.last = name
        return self

    def conv(
        self, channels: int, kernel: int, stride: int = 1, padding: int = 0, depthwise: bool = False
    ) -> Chain:
        depth = self.shape_now[2]
        shape = (channels, kernel, kernel, 1 if depthwise else depth)
        return self.add(Conv2d, shape, stride=(stride, stride), padding=(padding,) * 4,
                        groups=depth if depthwise else 1, requant=SCALE)  # fmt: skip

    def maximum(self, kernel: int, stride: int) -> Chain:
        return self.add(MaxPool2d, kernel=(kernel, kernel), stride=(stride, stride))

    def average(self, kernel: int) -> Chain:
        size = (kernel, kernel)
        return self.add(AveragePool2d, kernel=size, stride=size, requant=Mean())

    def dense(self, channels: int) -> Chain:
        return self.add(Dense, (channels, *self.shape_now), requant=SCALE)

    def graph(self, rng: np.random.Generator | None = None) -> Graph:
        """With random constants if there is an ``rng``."""
        values = self.constants
        if rng:
            bounds = {name: 127 if self.tensors[name].dtype.bits == 8 else 3000 for name in values}
            values = {
                name: rng.integers(-bounds[name], bounds[name] + 1, each.shape)
                for name, each in values.items()
            }
        operators = tuple(self.operators)
        return Graph(self.name, self.tensors, operators, values, "input", self.last)


def vgg16() -> Graph:
    return replace(nets.vgg16(), name="vgg16")


def alexnet() -> Graph:
    chain = (
        Chain("alexnet", (227, 227, 3))
        .conv(96, 11, 4)
        .maximum(3, 2)
        .conv(256, 5, 1, 2)
        .maximum(3, 2)
    )
    for channels in (384, 384, 256):
        chain.conv(channels, 3, 1, 1)
    chain.maximum(3, 2)
    for channels in (4096, 4096, 1000):
        chain.dense(channels)
    return chain.graph()


def mobilenet() -> Graph:
    chain = Chain("mobilenet", (224, 224, 3)).conv(32, 3, 2, 1)
    stages = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5,
              (1024, 2), (1024, 1))  # fmt: skip
    for channels, stride in stages:
        chain.conv(chain.shape_now[2], 3, stride, 1, depthwise=True)
        chain.conv(channels, 1)
    chain.average(7)
    chain.dense(1000)
    return chain.graph()


SECONDS = {"vgg16": 602.0, "alexnet": 20.0, "mobilenet": 6.3}
"""The paper's compute times (TRUTHS of the paper's setting: 4.85 MB/s both ways, no commands)."""


def paper_rates(graph: Graph) -> Rates:
    work = sum(layer.work for layer in layers(graph))
    card = Transfers(1 / 4.85)
    return Rates(SECONDS[graph.name] * 1e6 / work, card, card)


def board(sram_bytes: int) -> Hardware:
    """A board with a card."""
    plain = chains.board(streams=False, weights_in="flash", sram_bytes=sram_bytes)
    return replace(plain, card=Card(bytes=1 << 33))


def best_plan(graph: Graph, sram_bytes: int, frames: int, rates: Rates) -> Plan:
    """Plan with the scheduler ``best``, for a card of other rates than a board's."""
    region, notes = best.search(graph, layers(graph), sram_bytes, frames, rates)
    return laid(region, graph, board(sram_bytes), frames, notes)


def swapnn_plan(
    graph: Graph, sram_bytes: int, buffer_bytes: int, frames: int, rates: Rates
) -> Plan:
    pools = swapnn.pools(sram_bytes, buffer_bytes, (1, 2, 1))
    region, notes = swapnn.schedule(graph, layers(graph), pools, frames, rates)
    return laid(region, graph, board(sram_bytes), frames, notes)


def checked(plan: Plan, graph: Graph, seed: int = 1) -> float:
    """Bytes of SRAM that it takes when it runs; it is proved, computes nothing twice, and gives
    what the graph gives of random frames."""
    report, sram_bytes = exact(plan, graph, seed)
    assert not report.recomputed
    return sram_bytes


def laid(region: Swapped, graph: Graph, hardware: Hardware, frames: int, notes: Notes) -> Plan:
    return laid_at([region], graph, hardware, 2 * region.bytes, {}, frames).plan("swap", notes)


def random_chain(seed: int) -> Graph:
    """Up to four convolutions (depthwise, pointwise, strided) and poolings, and dense layers."""
    rng = np.random.default_rng(seed)
    sides = (int(n) for n in rng.integers(6, 20, 2))
    chain = Chain("net", (*sides, int(rng.integers(1, 5))))
    for _ in range(rng.integers(1, 5)):
        rows, columns, depth = chain.shape_now
        kind, narrow = rng.integers(0, 5), min(rows, columns)
        if kind == 0 and narrow >= 3:
            chain.maximum(int(rng.integers(2, 4)), 2)
        elif kind == 1 and depth > 1:
            chain.conv(depth, 3, int(rng.integers(1, 3)), 1, depthwise=True)
        elif kind == 2 or narrow < 3:
            chain.conv(int(rng.integers(1, 24)), 1)
        else:
            chain.conv(int(rng.integers(1, 24)), 3, int(rng.integers(1, 3)), int(rng.integers(2)))
    if rng.random() < 0.6:
        rows, columns, _ = chain.shape_now
        if rows == columns > 1 and rng.random() < 0.3:
            chain.average(rows)
        for _ in range(rng.integers(1, 3)):
            chain.dense(int(rng.integers(1, 40)))
    return chain.graph(rng)
