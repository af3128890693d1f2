"""Networks with branches that swap, as C: byte for byte what the graph computes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.plan.verify import verify
from pipeline.strategies.swap import Swap
from tests.codegen.card.support import planned, swapped
from tests.codegen.card.test_swapped import elements, same
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.strategies.swap.test_branches import inception, random_network, residual, squeezed
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated
from tests.tiers import quick

RESERVE = 4096


@pytest.mark.parametrize("network", quick(1, (residual, squeezed, inception), ci=0))
def test_as_the_graph_on_the_host(tmp_path: Path, network: Callable[[int], Graph]) -> None:
    graph = network(0)
    plan = planned(graph, elements(graph) // 3)
    verify(plan, graph)
    assert same(swapped(tmp_path, graph, plan))


@pytest.mark.parametrize("seed", quick((2,), range(12), ci=1))
def test_random_networks_on_the_host(tmp_path: Path, seed: int) -> None:
    graph = random_network(seed)
    assert same(swapped(tmp_path, graph, planned(graph, elements(graph) // (1 + seed % 4))))


@needs_arm
@pytest.mark.parametrize("network", quick(0, (squeezed, residual, inception), ci=1))
def test_as_the_graph_on_a_cortex_m7(tmp_path: Path, network: Callable[[int], Graph]) -> None:
    graph, hardware = network(0), board_named("stm32f746g_sd")
    sram_bytes = (elements(graph) // 3 + 2 * RESERVE) // 32 * 32
    hardware = replace(hardware, sram_bytes=sram_bytes, stack_reserve_bytes=RESERVE)
    plan = Swap().plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    assert size.status == "ok" and size.ram_objects["nn_arena"] == arena_bytes(plan)
    given = frames(graph, 2)
    runs = simulated(tmp_path, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))
    assert size.statics_bytes + (runs.stack_bytes or 0) <= size.sram_bytes <= sram_bytes
