"""Pex's own figures to the byte, and its numbers of accumulating layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from pipeline.graph.graph import Graph
from pipeline.schedules.lower import needed
from pipeline.search.channels.network import Network
from pipeline.search.channels.rules import Rules
from pipeline.search.channels.search import Best, Search, search
from pipeline.strategies.partial import Partial
from tests.strategies import nets
from tests.strategies.test_ordinary import BOARD

NETWORKS: dict[str, Callable[[], Graph]] = {
    "figure 1": nets.fig1_block,
    "MobileNetV2 224": lambda: nets.mobilenet_v2(224, weights=False),
    "MobileNetV2 172": lambda: nets.mobilenet_v2(172, weights=False),
    "MobileNetV2 160": lambda: nets.mobilenet_v2(160, weights=False),
    "RES-15": nets.res15,
    "MicroNets-KWS-L base": nets.micronet_kws_l,
    "DS-CNN S": lambda: nets.ds_cnn((64,) * 5),
    "EfficientNet-B0 160": nets.efficientnet_b0,
}

ROWS = [
    ("figure 1", 8, 8_450, 1),
    ("MobileNetV2 224", 8, 376_320, 3),
    ("MobileNetV2 224", 16, 577_024, 2),
    ("MobileNetV2 172", 8, 221_880, 3),
    ("MobileNetV2 160", 32, 307_200, 0),
    ("MobileNetV2 160", 16, 294_400, 2),
    ("MobileNetV2 160", 8, 192_000, 3),
    ("RES-15", 8, 44_590, 6),
    ("MicroNets-KWS-L base", 32, 69_000, 0),
    ("MicroNets-KWS-L base", 16, 69_000, 1),
    ("MicroNets-KWS-L base", 8, 65_750, 2),
    ("DS-CNN S", 8, 16_000, None),
    ("EfficientNet-B0 160", 8, 307_200, 0),
]
"""Peak in bytes by accumulator bits, and accumulating layers; of RES-15 both are the least."""


@cache
def network(name: str) -> Graph:
    return NETWORKS[name]()


def best(graph: Graph, bits: int, kind: Search) -> Best:
    """In no more states than a fifth of a second is enough for."""
    compact = Network.of(graph, graph.input, needed(graph), bits)
    return search(Rules(compact), kind, 5_000)


@pytest.mark.parametrize(("name", "bits", "peak", "layers"), ROWS)
def test_published_peak(name: str, bits: int, peak: int, layers: int | None) -> None:
    graph = network(name)
    published, exact = best(graph, bits, "pex"), best(graph, bits, "exact")
    assert published.peak == exact.peak == 2 * peak
    if layers is not None:
        assert published.accumulated == layers >= exact.accumulated


@pytest.mark.parametrize("name", NETWORKS)
def test_schedules_replay_at_any_width(name: str) -> None:
    """``scheduled`` raises when the replay finds another peak than the search, or an operator that
    runs twice or never."""
    graph, operators = network(name), needed(network(name))
    for bits in (8, 16, 32):
        _, schedule = Partial(accumulator_bits=bits).scheduled(graph, graph.input, operators)
        assert schedule


def test_squeeze_in_place_is_what_makes_efficientnets_row() -> None:
    """307,200 B; without overwriting what is squeezed it would be 313,600."""
    graph = network("EfficientNet-B0 160")
    compact = Network.of(graph, graph.input, needed(graph), 8)
    assert any(node.over for node in compact.nodes if "multiply" in node.op.name)


def test_memory_of_a_whole_plan() -> None:
    plan = Partial(accumulator_bits=8).plan(network("figure 1"), BOARD)
    assert max(buffer.extent[1] for buffer in plan.buffers if buffer.memory == "sram") == 2 * 8_450
