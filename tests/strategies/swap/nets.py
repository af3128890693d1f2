"""Chains of the kinds that strategy swap takes: SwapNN's three networks without weights (zeros that
take no memory), random small ones with, and a board with a card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Card, Hardware
from pipeline.plan.rates import Rates, Transfers
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.lower import Notes, laid_at
from pipeline.schedules.swapped import Swapped
from pipeline.search.swap import best, swapnn
from pipeline.search.view.tiles import layers
from tests.strategies import chains, nets
from tests.strategies.proving import exact
from tests.strategies.zoo import network


class Chain:
    """Each method adds a layer, as ``nets.Net`` has it, and returns the chain."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name, self.net, self.last = name, nets.Net(shape, weights=False), "input"

    @property
    def shape_now(self) -> tuple[int, ...]:
        return self.net.tensors[self.last].shape

    def __getattr__(self, kind: str) -> Callable[..., Chain]:
        def added(*values: object, **options: object) -> Chain:
            self.last = getattr(self.net, kind)(self.last, *values, **options)
            return self

        return added

    def conv(
        self, channels: int, kernel: int, stride: int = 1, padding: int = 0, depthwise: bool = False
    ) -> Chain:
        options = {"depthwise": depthwise, "padding": padding}
        return self.__getattr__("conv")(channels, kernel, stride, **options)

    def graph(self, rng: np.random.Generator | None = None) -> Graph:
        """With random constants if there is an ``rng``, else with zeros that take no memory."""
        graph = replace(self.net.graph(), name=self.name)
        for name in graph.constants if rng else ():
            most = 127 if graph.tensors[name].dtype.bits == 8 else 3000
            values = rng.integers(-most, most + 1, graph.tensors[name].shape)  # type: ignore[union-attr]
            graph.constants[name] = values
        return graph


def vgg16() -> Graph:
    return replace(nets.vgg16(), name="vgg16")


def alexnet() -> Graph:
    chain = Chain("alexnet", (227, 227, 3)).conv(96, 11, 4).maximum(3, 2).conv(256, 5, 1, 2)
    chain.maximum(3, 2).conv(384, 3, 1, 1).conv(384, 3, 1, 1).conv(256, 3, 1, 1).maximum(3, 2)
    return chain.dense(4096).dense(4096).dense(1000).graph()


def mobilenet() -> Graph:
    return replace(network("mobilenet_v1"), name="mobilenet")


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
    """Bytes of SRAM that it takes; it is proved, computes nothing twice, and is right on frames."""
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
            chain.average()
        for _ in range(rng.integers(1, 3)):
            chain.dense(int(rng.integers(1, 40)))
    return chain.graph(rng)
