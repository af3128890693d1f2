"""Plans of strategy swap: the simulator finds the times that the planner expects, and no others;
those of plans whose card is sealed; and what a plan says reaches a run's result."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from pipeline import verdict
from pipeline.artifacts import write_json
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware, Power
from pipeline.plan.pieces import Pieces, transferred
from pipeline.plan.rates import work
from pipeline.runner.results import known
from pipeline.sealing import COSTS, Security, piece_bytes
from pipeline.strategies.swap import Swap
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized, summary
from pipeline.words import METRICS
from tests.codegen.card.support import elements
from tests.strategies.swap.nets import alexnet, mobilenet, random_chain, vgg16
from tests.targets.cortex_m import board_named
from tests.tiers import quick
from tests.timing.test_simulate import slow

SECONDS = {"vgg16": 602.0, "alexnet": 20.0, "mobilenet": 6.3, "small": 0.01}


@pytest.mark.parametrize(
    ("network", "overhead", "written_mb"),
    quick(1, [(vgg16, 5.1, 15.09), (alexnet, 58.9, 0.78), (mobilenet, 52.7, 5.04)]),
)
def test_the_published_schedule_takes_its_time(
    network: Callable[[], Graph], overhead: float, written_mb: float
) -> None:
    """512 KB of SRAM, buffers of 128 KB, 4.85 MB/s: Algorithm 1 as it was simulated before."""
    graph = network()
    hardware = paper_board(graph, 524288)
    plan = Swap(scheduler="swapnn").plan(graph, hardware)
    found = summary(plan, graph, hardware)
    assert found["overhead_pct"] == pytest.approx(overhead, abs=0.1)
    assert found["makespan_us"] == pytest.approx(dict(plan.notes)["expected_makespan_us"], rel=1e-4)
    assert found["compute_us"] == pytest.approx(SECONDS[graph.name] * 1e6)
    assert found["card_write_bytes"] / 1e6 == pytest.approx(written_mb, abs=0.01)
    assert found["weight_mb"] == pytest.approx(graph.weight_bytes / 1e6)


def small() -> Graph:
    return replace(random_chain(0), name="small")


def paper_board(graph: Graph, sram_bytes: int) -> Hardware:
    operations = sum(work(op, graph) for op in graph.operators)
    hardware = slow(bytes=64 * 10**9, paper_bytes_per_s=4.85e6)
    cycles = SECONDS[graph.name] * 1e6 / operations
    return replace(hardware, sram_bytes=sram_bytes, cycles_per_mac=cycles)


@pytest.mark.parametrize(
    ("network", "sram_bytes", "frames"),
    [
        (small, 1 << 14, 1),
        (small, 1 << 14, 10),
        *(
            pytest.param(network, sram_bytes, frames, marks=pytest.mark.slow)
            for network in (mobilenet, vgg16, alexnet)
            for sram_bytes, frames in ((524288, 1), (524288, 10), (8388608, 10))
        ),
    ],
)
def test_the_planner_of_best_and_the_simulator_agree(
    network: Callable[[], Graph], sram_bytes: int, frames: int
) -> None:
    graph = network()
    hardware = paper_board(graph, sram_bytes)
    plan = Swap(frames=frames).plan(graph, hardware)
    found = summary(plan, graph, hardware)
    assert found["makespan_us"] == pytest.approx(dict(plan.notes)["makespan_us"], rel=1e-9)
    assert found["compute_us"] == pytest.approx(SECONDS[graph.name] * 1e6)
    assert found["throughput_fps"] == pytest.approx(frames / found["makespan_us"] * 1e6)
    if frames == 10 and network != small:
        assert found["throughput_loss_pct"] <= 1
    elif network != small:
        assert found["overhead_pct"] <= {mobilenet: 4.2, alexnet: 56.0, vgg16: 3.5}[network]
    assert found["makespan_us"] >= float(dict(plan.notes)["bound_us"]) > 0


@pytest.mark.parametrize("security", ["none", "integrity", "encrypted"])
@pytest.mark.parametrize("seed", [1, 4])
def test_sealing_takes_both_tracks_time(seed: int, security: Security) -> None:
    """Charge what passes at the core's cost; the whole is longer by just that."""
    graph, hardware = random_chain(seed), board_named("stm32f746g_sd")
    hardware = replace(hardware, card=replace(hardware.card, security=security))
    size = elements(graph)
    plan = Swap(scheduler="swapnn", buffer_bytes=size // 8 // 32 * 32).plan(graph, hardware)
    cut, cost = Pieces.of(plan), COSTS["cortex-m7", security]
    sizes = [n for name, _, run in transferred(plan) for n in cut.sizes(name, run)]
    cycles = sum(sizes) * cost.byte + len(sizes) * cost.piece
    found, plain = (simulate(plan, graph, hardware, sealing=sealing) for sealing in (1, 0))
    assert found.sealing_us == pytest.approx(cycles / hardware.clock_hz * 1e6)
    assert found.makespan_us == pytest.approx(plain.makespan_us + found.sealing_us)
    assert (found.stop >= found.start).all() and found.stop.max() <= found.makespan_us * 1.000001
    told, alone = (summarized(each, graph, hardware) for each in (found, plain))
    assert told["compute_us"] == pytest.approx(alone["compute_us"])
    assert told["io_us"] == pytest.approx(alone["io_us"])
    assert told["sealing_us"] == found.sealing_us and "sealing_us" not in alone


@pytest.mark.parametrize("seed", range(4))
def test_every_transfer_is_of_whole_pieces(seed: int) -> None:
    graph, hardware = random_chain(seed), board_named("stm32f746g_sd")
    size = elements(graph)
    plan = Swap(scheduler="swapnn", buffer_bytes=max(128, size // 8 // 32 * 32)).plan(
        graph, hardware
    )
    cut = Pieces.of(plan)
    for name, _, (low, stop) in transferred(plan):
        assert {low, stop} <= set(cut.ends[name])
        assert sum(cut.sizes(name, (low, stop))) == stop - low
    for name, ends in cut.ends.items():
        sizes = np.array([high - low for low, high in pairwise(ends)])
        assert (sizes > 0).all() and sum(sizes) == ends[-1]
        if plan.buffer[name].role != "constant":
            assert sizes.max() <= piece_bytes(512)


TIMED = (
    "compute_us", "io_us", "overhead_pct", "throughput_fps", "throughput_loss_pct", "energy_uj",
    "card_read_bytes", "card_write_bytes", "wear", "wear_years_first_failure", "wear_years_half",
)  # fmt: skip


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("scheduler", ["best", "swapnn"])
def test_every_timed_metric_is_in_the_result(tmp_path: Path, scheduler: str, frames: int) -> None:
    power = Power(supply_volt=3.3, active_ma=50.0, idle_ma=5.0, source="made up")
    board = replace(slow(first_failure_cycles=1000), sram_bytes=1 << 15, power=power)
    graph = random_chain(3)
    strategy = Swap(scheduler=scheduler, frames=frames, buffer_bytes=2048)  # type: ignore[arg-type]
    report = verdict.check(strategy.plan(graph, board), graph, board)
    write_json(tmp_path / "schedule.json", report)
    groups = ("model", "data", "strategy", "target")
    limits = {"name": "x", "sram_bytes": board.sram_bytes, "flash_bytes": board.flash_bytes}
    result = known(tmp_path, {"hardware": limits, **{group: {"name": "x"} for group in groups}})
    assert result["status"] == "ok"
    for name in TIMED:
        assert name in METRICS and isinstance(result[name], float) and result[name] > 0, name
    stay = {"maps_stay_bytes", "weights_stay_bytes"}
    assert stay <= set(METRICS) and (stay <= set(result)) == (scheduler == "best")
    assert "latency_us" not in result  # which is a run's
