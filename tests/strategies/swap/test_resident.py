"""What need not be swapped stays: weights in flash, feature maps in SRAM."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.hardware import Card, Hardware, Power
from pipeline.kernels.alone import alone_us
from pipeline.plan.rates import Rates, Transfers
from pipeline.plan.vocabulary import Plan
from pipeline.search.swap import best
from pipeline.search.swap.layers import layers, timed
from pipeline.search.swap.lower_bounds import lower_bound
from pipeline.search.swap.resident import (
    CODE_BYTES,
    choices,
    maps_stay_bytes,
    staying,
    weights_stay_bytes,
)
from pipeline.search.swap.search import Search, Share
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.swap import Swap, card_share, searched
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized
from pipeline.timing.trade import trade
from tests.strategies.swap.nets import Chain, board, checked, random_chain
from tests.targets.cortex_m import board_named

RATES = Rates(0.01, Transfers(0.1, 3.0), Transfers(0.1, 5.0))


def network() -> Graph:
    """10,216 bytes of weights."""
    chain = Chain("net", (12, 12, 8))
    chain.conv(24, 3, 1, 1)
    chain.conv(40, 1)
    chain.maximum(2, 2)
    chain.conv(20, 3, 1, 1)
    chain.dense(2)
    return chain.graph(np.random.default_rng(7))


def small(sram_bytes: int, flash_bytes: int) -> Hardware:
    """So much flash besides what is left to the program."""
    return replace(
        board(sram_bytes),
        flash_bytes=CODE_BYTES + flash_bytes,
        card=Card(bytes=1 << 33, read_bytes_per_s=1e7, write_bytes_per_s=1e7),
    )


def figures(plan: Plan, graph: Graph, hardware: Hardware) -> dict[str, float]:
    return summarized(simulate(plan, graph, hardware), graph, hardware)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best, "TASKS", 0)


@pytest.mark.ci
@pytest.mark.usefixtures("few")
def test_weights_in_flash_are_never_read_from_the_card() -> None:
    graph, hardware = network(), small(9_000, 4_000)
    plan = searched("joint", graph, hardware, 1, best.Aim(flash_bytes=4_000))
    held = int(dict(plan.notes)["weights_in_flash_bytes"])
    flash = [b for b in plan.buffers if b.memory == "flash" and len(b.shape) > 1]
    assert 0 < held == sum(graph.tensors[b.tensor].size for b in flash) <= 4_000
    plain = searched("swap", graph, hardware, 1, best.LATENCY)
    assert dict(plain.notes)["weights_in_flash_bytes"] == 0
    read = [figures(each, graph, hardware)["card_read_bytes"] for each in (plan, plain)]
    assert read[0] <= read[1] - held
    checked(plan, graph)


@pytest.mark.ci
def test_the_joint_schedule_swaps_only_what_does_not_fit() -> None:
    graph = random_chain(4)
    assert not Joint().plan(graph, small(1 << 16, 1 << 16)).on_card
    needs = Joint().plan(graph, small(1200, 1 << 16))
    assert needs.on_card and dict(needs.notes)["form"] == "swapped" and needs.strategy == "joint"
    assert not any(b.role == "constant" and b.memory == "card" for b in needs.buffers)


@pytest.mark.ci
@pytest.mark.usefixtures("few")
def test_rows_in_place_come_before_swapping() -> None:
    """In as little SRAM as rows that overwrite each other take, less than whole tensors need."""
    graph, hardware = network(), small(1 << 16, 1 << 16)
    least = arena_bytes(Joint().plan(graph, hardware))
    assert least < arena_bytes(Ordinary().plan(graph, hardware))
    size = least + hardware.stack_reserve_bytes
    for objective in ("memory", "latency"):
        fits = Joint(objective=objective).plan(graph, small(size, 1 << 16))  # type: ignore[arg-type]
        assert not fits.on_card and arena_bytes(fits) <= least
    assert Joint().plan(graph, small(size - 16, 1 << 16)).on_card


@pytest.mark.parametrize("flash_bytes", [0, 5_000])
def test_from_so_much_on_nothing_is_swapped(flash_bytes: int) -> None:
    parts = layers(network())
    least = maps_stay_bytes(Search(parts, 0, RATES))
    written = []
    for sram in (least, least - 16):
        cut = Search(parts, sram, RATES).best(0, len(parts) - 1, Share(1.0, 0.0, 1.0, True))
        written.append(sum(each.written_bytes for each in cut))
    assert written[0] == parts[-1].target_bytes < written[1]
    stay = weights_stay_bytes(Search(parts, 0, RATES), flash_bytes)
    assert stay >= sum(layer.weight_bytes for layer in parts) - flash_bytes
    weightless = Search(staying(parts, {layer.weight for layer in parts}), 0, RATES)
    assert stay <= weights_stay_bytes(weightless, 0) + sum(layer.weight_bytes for layer in parts)


def test_weights_stay_in_flash_where_kernels_are_not_too_slow_for_it() -> None:
    """Those for weights in windows are faster on an M7: a convolution's are read all the same."""
    graph, hardware = network(), board_named("stm32f746g_sd")
    us, in_flash = (alone_us(graph, hardware, windows=each) for each in (True, False))
    parts = timed(layers(graph), us, Rates.of(hardware), in_flash)
    assert parts[0].slower > 3 and parts[2].slower == 1
    cut = Search(parts, 9_000, RATES).best(0, len(parts) - 1, Share(1.0, 0.0, 1.0, True))
    cheap, dear = (replace(RATES, work_us=us) for us in (1e-9, 1e3))
    weights = {part.weight for part in parts if part.weight}
    assert next(choices(cut, cheap, 1 << 20)) == weights
    assert all(parts[0].weight not in held for held in choices(cut, dear, 1 << 20))
    (slow,) = staying(parts[:1], weights)
    assert slow.work == parts[0].work * parts[0].slower and not slow.weight


def test_the_bound_counts_what_flash_may_hold() -> None:
    graph = network()
    parts = layers(graph)
    rates = replace(RATES, work_us=1e-6)
    none, some, all_of_it = (
        lower_bound(parts, graph, 500, rates, 1, flash).us for flash in (0, 4_000, 1 << 20)
    )
    each = (none - some) / 4_000
    assert none > some > all_of_it and each == pytest.approx(0.1 + 3 / 500)


@pytest.mark.ci
def test_energy_counts_the_cards_time() -> None:
    power = Power(supply_volt=3.0, active_ma=80.0, idle_ma=40.0, source="made up")
    card = replace(small(4_000, 0).card, read_ma=90.0, idle_ma=10.0)
    hardware = replace(small(4_000, 0), power=power, card=card)
    assert card_share(hardware) == pytest.approx(80 / 50)
    graph = network()
    plans = [Swap(objective=each).plan(graph, hardware) for each in ("latency", "energy")]  # type: ignore[arg-type]
    spent = [figures(plan, graph, hardware)["energy_uj"] for plan in plans]
    assert spent[1] <= spent[0]
    for plan, each in zip(plans, spent, strict=True):
        found = figures(plan, graph, hardware)
        row = trade(str(dict(plan.notes)["trade"]), found["compute_us"], 0, hardware)[0]
        assert row["energy_uj"] == pytest.approx(each, rel=0.02)
        assert row["latency_us"] == pytest.approx(found["makespan_us"], rel=0.02)
