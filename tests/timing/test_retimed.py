"""A plan's time in the simulator's terms is the run's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.metrics import METRICS
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets.card import instructions
from pipeline.timing.retimed import compared, retimed_us
from tests.codegen.int8.support import frames
from tests.strategies.nets import Net
from tests.strategies.swap.nets import Chain
from tests.targets.cortex_m import board_named, built, needs_arm, simulated
from tests.timing.toys import rows, slow, swapped

COUNTED = {
    "nn_invoke": 900, "nn_conv2d0": 70, "nn_conv2d0_2": 30, "nn_await.constprop.0": 500,
    "nn_card_end.constprop.0": 40, "memset": 6, "block_device_start": 4,
}  # fmt: skip


def test_instructions_are_for_layers_waiting_or_the_card() -> None:
    found = instructions(COUNTED, sum(COUNTED.values()), ["conv2d0", "dense1"])
    assert found == {"layers": [("conv2d0", 100)], "invoke": 900, "waiting": 540, "card": 10}
    without = {name: n for name, n in COUNTED.items() if "await" not in name and "end" not in name}
    assert instructions(without, sum(without.values()), ["conv2d0"]) is None


@pytest.mark.parametrize("inside", [0, 30, 80])
def test_kernels_take_what_was_counted(inside: int) -> None:
    """Rows of 2 B by way of one buffer a side: read, computed and stored one after the other, but
    that a row is read while the one before is stored. Functions of its own, some or all
    swallowed."""
    graph, hardware = rows(), slow()
    plan = swapped(graph, 1)
    layers = [("conv2d0", 80 - inside)] if inside < 80 else []
    counted = {"layers": layers, "invoke": inside, "waiting": 0, "card": 7}
    assert retimed_us(plan, graph, hardware, counted) == 8 * (2 + 10) + 2 + 7 + 16
    more = counted | {"card": 1007}
    assert retimed_us(plan, graph, hardware, more) == 8 * (2 + 10) + 2 + 1007 + 16


def test_says_by_how_much_it_is_more() -> None:
    graph, hardware = rows(), slow()
    plan = swapped(graph, 1)
    counted = {"layers": [("conv2d0", 80)], "invoke": 0, "waiting": 0, "card": 0}
    expected = retimed_us(plan, graph, hardware, counted)
    device = {"card_instructions": counted, "instructions": {"median": round(expected / 2)}}
    found = compared(plan, graph, hardware, device)
    assert found["retimed_us"] == expected and found["virtual_us"] == round(expected / 2)
    assert found["retimed_error_pct"] == pytest.approx(100)
    assert set(found) <= set(METRICS)  # or output=json would leave them out
    assert compared(plan, graph, hardware, {"instructions": {"median": 1}}) == {}


def chain() -> Graph:
    net = Chain("net", (32, 32, 16))
    net.conv(32, 3, 1, 1)
    net.maximum(2, 2)
    net.conv(64, 3, 1, 1)
    net.conv(64, 3, 2, 1)
    net.dense(40)
    return net.graph(np.random.default_rng(0))


def branches() -> Graph:
    net = Net((24, 24, 8))
    x = net.conv("input", 24, 3)
    x = net.add(net.conv(net.conv(x, 24, 3), 24, 3), x)
    net.dense(net.average(net.conv(net.conv(x, 48, 3, 2), 48, 3)), 10)
    return net.graph()


@needs_arm
@pytest.mark.ci
@pytest.mark.parametrize(
    ("network", "sram_bytes", "security"),
    [
        (chain, 30_144, "unchecked"),
        (branches, 20_032, "unchecked"),
        (chain, 30_144, "integrity"),
        (branches, 20_032, "none"),
    ],
)
def test_the_runs_time_is_known_within_3_percent(
    tmp_path: Path, network: Callable[[], Graph], sram_bytes: int, security: Security
) -> None:
    """With so little memory that the core waits for a twentieth of the time or more."""
    graph, board = network(), board_named("stm32f746g_sd")
    board = replace(board, card=replace(board.card, security=security))
    sealing_bytes = board.card.kept_bytes
    hardware = replace(board, sram_bytes=sram_bytes + sealing_bytes, stack_reserve_bytes=6_144)
    plan = Swap().plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    runs = simulated(tmp_path, graph, hardware, size, frames(graph, 2)[:1])
    modelled = runs.modelled_cycles
    assert modelled is not None
    counted = instructions(
        modelled["function_instructions"], modelled["instructions"],
        [op.name for op in graph.operators],
    )  # fmt: skip
    device = {
        "card_instructions": counted, "instructions": {"median": int(runs.instructions[0])},
    }  # fmt: skip
    found = compared(plan, graph, hardware, device)
    assert abs(found["retimed_error_pct"]) <= 3
    assert found["retimed_us"] > 1.05 * (found["virtual_us"] - counted["waiting"] / 216) > 0
