"""The strategy's settings: what they choose, and what is refused in one line."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Card, Hardware, MemoryRegion
from pipeline.kernels import Form, named
from pipeline.plan.unrolled import unroll
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute
from pipeline.search.swap.layers import layers
from pipeline.search.swap.tiles import tilings
from pipeline.strategies.swap import Swap
from tests.strategies.swap.nets import alexnet, board, random_chain


def with_card(sram_bytes: int) -> Hardware:
    """A board with what times are made of."""
    card = Card(bytes=1 << 33, read_bytes_per_s=1e7, write_bytes_per_s=1e7)
    return replace(board(sram_bytes), clock_hz=100_000_000, card=card)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheduler": "first"}, r"strategy.scheduler=first: choose best or swapnn"),
        ({"scheduler": 1}, r"strategy.scheduler=1: choose best or swapnn"),
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
    hardware = replace(with_card(4096), card=Card())
    with pytest.raises(ThimbleError, match="test has none; try hardware=stm32f746g_sd"):
        Swap().plan(random_chain(3), hardware)


@pytest.mark.parametrize("scheduler", ["best", "swapnn"])
def test_arenas_and_cards_have_the_boards_names(scheduler: Any) -> None:
    """On a board whose arena lies in a memory of its own, nothing lies in the chip's."""
    outside = MemoryRegion("dram", 0, 1 << 16, external=True)
    hardware = replace(with_card(64), regions=(outside,), activations_in="sdram")
    graph = random_chain(3)
    plan = Swap(scheduler=scheduler, buffer_bytes=2048).plan(graph, hardware)
    assert {buffer.memory for buffer in plan.buffers} == {"dram", "flash", "card"}
    assert verify(plan, graph).steps


@pytest.mark.parametrize("scheduler", ["best", "swapnn"])
def test_every_step_names_a_kernel_that_takes_it(scheduler: Any) -> None:
    graph, hardware = random_chain(3), replace(with_card(8192), core="cortex_m", cpu="cortex-m7")
    plan = Swap(scheduler=scheduler, buffer_bytes=2048).plan(graph, hardware)
    steps = [step for step, _ in unroll(plan.tracks[0].steps, {}) if isinstance(step, Compute)]
    assert {step.op for step in steps} == {op.name for op in graph.operators}
    for step in set(steps):
        form = Form.of(step, plan.buffer, graph)
        kernel = named(step.kernel, form, hardware)
        assert kernel.accepts(form) and step.unit == kernel.unit(form) and not step.scratch


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
