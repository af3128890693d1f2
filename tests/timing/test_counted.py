"""The time of a run with a card: of the calls that were counted, and never far from the plan's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.vocabulary import Plan
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets.card import callers, counted, own_cycles
from pipeline.targets.layers import owners
from pipeline.targets.runs import Runs
from pipeline.timing.counted import LATENCY, latency
from pipeline.timing.simulate import simulate
from tests.codegen.int8.support import frames
from tests.strategies.nets import Net
from tests.strategies.swap.nets import Chain
from tests.strategies.zoo import network as zoo
from tests.targets.cortex_m import board_named, built, needs_arm, simulated
from tests.tiers import quick
from tests.timing.test_simulate import rows, slow, swapped

LAYERS = ["conv2d0", "dense1"]
FUNCTIONS = {
    "nn_invoke": 900, "nn_steps.constprop.0": 3, "nn_conv2d0": 70, "nn_conv2d0_2": 30,
    "nn_await.constprop.0": 500, "nn_card_end": 40, "aead_open": 6, "block_device_start": 4,
    "nn_dot_2x2": 8,
}  # fmt: skip


def test_calls_are_layers_and_the_rest_is_the_cards() -> None:
    assert callers(FUNCTIONS) == ("nn_invoke", "nn_steps.constprop.0")
    assert callers(["nn_invoke", "nn_conv2d0"]) == ()
    calls = [("nn_conv2d0_2", [9, 1, 2, 3]), ("nn_await", [9, 9, 9, 9]), ("", [5, 5, 5, 5]),
             ("nn_conv2d0", [9, 4, 5, 6])]  # fmt: skip
    took = {name: [1, 1, cycles, 9999] for name, cycles in FUNCTIONS.items()}
    modelled = {"calls": calls, "invoke_functions": took}
    assert counted(modelled, LAYERS) == {
        "kernels": {"conv2d0": [[1, 2, 3], [4, 5, 6]]},
        "sealing": 6,
    }
    assert counted({"invoke_functions": took}, LAYERS) is None and counted(None, LAYERS) is None
    whole = sum(FUNCTIONS.values())
    assert own_cycles(FUNCTIONS, whole, LAYERS) == 550
    assert own_cycles({"nn_invoke": 1, "nn_conv2d0": 2}, 3, LAYERS) is None


def test_a_run_takes_what_its_calls_took() -> None:
    """Rows of 2 B by way of one buffer a side: read, computed and stored one after the other, but
    that a row is read while the one before is stored. One call takes longer; steps that are no
    calls of their own share what was counted; the result is read at the end."""
    graph, hardware = rows(), slow()
    plan, result_us = swapped(graph, 1), 16

    def taken(calls: list[list[int]]) -> list[float]:
        device = {"beside_card": {"kernels": {"conv2d0": calls}, "sealing": 0}}
        found = latency(plan, graph, hardware, device)
        return [found[name] for name in LATENCY]

    low, middle, high = taken([[5, 10, 20]] * 7 + [[6, 1010, 20]])
    assert middle == 8 * (2 + 10) + 2 + 1000 + result_us
    assert (low, high) == (8 * (2 + 5) + 2 + 1 + result_us, 8 * (2 + 20) + 2 + result_us)
    assert taken([[40, 80, 160]]) == [8 * (2 + n) + 2 + result_us for n in (5, 10, 20)]
    assert latency(plan, graph, hardware, {}) == {}


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


def run(folder: Path, graph: Graph, hardware: Hardware) -> tuple[Plan, Runs, float]:
    """The plan, its run on the simulated core, and by how much the plan is longer, in percent."""
    plan, names = Swap().plan(graph, hardware), [op.name for op in graph.operators]
    size = built(folder, graph, hardware, plan)
    runs = simulated(folder, graph, hardware, size, frames(graph, 2)[:1])
    device = {"beside_card": counted(runs.modelled_cycles, names)}
    took_us = latency(plan, graph, hardware, device)["latency_us"]
    return plan, runs, 100 * (simulate(plan, graph, hardware).makespan_us / took_us - 1)


@needs_arm
@pytest.mark.parametrize(
    ("network", "sram_bytes", "security"),
    quick(
        0,
        [
            (chain, 30_144, "integrity"),
            (branches, 20_032, "none"),
            (chain, 30_144, "unchecked"),
            (branches, 20_032, "unchecked"),
        ],
        ci=1,
    ),
)
def test_tracks_are_timed_as_they_run(
    tmp_path: Path, network: Callable[[], Graph], sram_bytes: int, security: Security
) -> None:
    """With an instruction a cycle, which the simulated card's clock counts, too, it is the run's
    own time, within 3 %; the core waits for a twentieth of it or more. What begins and ends
    transfers, and seals, keeps both tracks."""
    graph, board = network(), board_named("stm32f746g_sd")
    board = replace(board, card=replace(board.card, security=security))
    sealing_bytes = board.card.kept_bytes
    hardware = replace(board, sram_bytes=sram_bytes + sealing_bytes, stack_reserve_bytes=6_144)
    plan, runs, error_pct = run(tmp_path, graph, hardware)
    assert abs(error_pct) < 6
    modelled, names = runs.modelled_cycles, [op.name for op in graph.operators]
    assert modelled is not None
    of = {name: counts[0] for name, counts in modelled["invoke_functions"].items()}
    waits = sum(n for name, n in of.items() if "_await" in name or "_card_end" in name)
    owner = owners(of, names)
    card = (own_cycles(of, sum(of.values()), names) or 0) - waits
    kernels: dict[str, list[list[int]]] = {}
    for name, (instructions, *_) in modelled["calls"]:
        if name in owner:
            kernels.setdefault(owner[name], []).append([instructions] * 3)
    device = {"beside_card": {"kernels": kernels, "sealing": 0}}
    found_us = latency(plan, graph, hardware, device)["latency_us"] + card / 216
    virtual_us = int(runs.instructions[0]) / 216
    assert found_us == pytest.approx(virtual_us, rel=0.03)
    assert found_us > 1.05 * (virtual_us - waits / 216) > 0


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenet_v1", "resnet18", "googlenet", "alexnet", "vgg16"])
def test_a_plan_says_what_its_run_takes_within_3_percent(tmp_path: Path, name: str) -> None:
    """``docs/swap.md``'s networks, whole: minutes of a core each."""
    hardware = replace(board_named("stm32f746g_sd"), sram_bytes=320_000)
    assert abs(run(tmp_path, zoo(name), hardware)[2]) <= 3
