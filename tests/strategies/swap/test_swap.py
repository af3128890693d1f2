"""The strategy's settings: what they choose, and what is refused in one line."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Card
from pipeline.strategies.swap.layers import layers
from pipeline.strategies.swap.swap import Swap
from pipeline.strategies.swap.tiles import tilings
from tests.strategies.swap.nets import alexnet, board, random_chain


def with_card(sram_bytes: int) -> Any:
    """A board with what times are made of."""
    card = Card(bytes=1 << 33, read_bytes_per_s=1e7, write_bytes_per_s=1e7)
    plain = vars(board(sram_bytes))
    return SimpleNamespace(**plain, cycles_per_mac=1.0, clock_hz=100_000_000, card=card)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheduler": "first"}, r"strategy.scheduler=first: choose best or swapnn"),
        ({"objective": "both"}, r"strategy.objective=both: choose latency or throughput"),
        ({"frames": -1}, r"strategy.frames=-1"),
        ({"buffer_bytes": 1}, r"strategy.buffer_bytes=1: at least 16"),
        ({"pools": (1, 2)}, r"strategy.pools=\[1, 2\]: three shares"),
        ({"scheduler": "swapnn", "buffer_bytes": 256, "pools": (2, 4, 1)}, "can deadlock"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ThimbleError, match=message):
        Swap(**settings).plan(random_chain(3), with_card(4096))


def test_a_board_without_a_card_is_refused() -> None:
    hardware = with_card(4096)
    hardware.memories = hardware.memories[:2]
    with pytest.raises(ThimbleError, match="test has none; try hardware=stm32f746g_sd"):
        Swap().plan(random_chain(3), hardware)


@pytest.mark.parametrize("scheduler", ["best", "swapnn"])
def test_frames_follow_the_objective(scheduler: Any) -> None:
    graph, hardware = random_chain(3), with_card(8192)
    chosen = Swap(scheduler=scheduler, buffer_bytes=2048)
    assert chosen.plan(graph, hardware).frames == 1
    assert replace(chosen, objective="throughput").plan(graph, hardware).frames == 10
    assert replace(chosen, objective="throughput", frames=2).plan(graph, hardware).frames == 2


def test_counts_are_those_of_the_rule() -> None:
    """Each input tile has its own read and write; pooling computes once an input tile, others once
    a weight tile."""
    counts = Swap(buffer_bytes=16384).counts(alexnet())
    found = tilings(layers(alexnet()), 16384)
    pooled = sum(each.inputs for each in found if not each.weights)
    tiles = sum(each.inputs for each in found)
    assert counts == {"io_tasks": 7229, "compute_tasks": 7229 - 2 * tiles + pooled}
