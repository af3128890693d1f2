"""The strategy's settings: what they choose, and what is refused in one line; plans that say what
they need though it does not fit; and what stays: weights in flash, feature maps in SRAM."""

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import verdict
from pipeline.codegen.checks import arena_bytes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Card, Hardware, MemoryRegion, Power
from pipeline.kernels import Form, named
from pipeline.plan.fit import roomy
from pipeline.plan.rates import Rates, Transfers
from pipeline.plan.unrolled import unroll
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.search.moves.swap import card_share, searched
from pipeline.search.swap import best, search
from pipeline.search.swap.lower_bounds import lower_bound
from pipeline.search.view.tiles import layers, staying
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.swap import Swap
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized
from pipeline.timing.trade import trade
from tests.report.pages import write
from tests.strategies.swap.nets import Chain, best_plan, board, checked, random_chain
from tests.tiers import quick
from tests.timing.test_simulate import slow

GRAPH = random_chain(3)
both = pytest.mark.parametrize("scheduler", ["best", "swapnn"])


def with_card(sram_bytes: int = 8192) -> Hardware:
    """A board with what times are made of."""
    card = Card(bytes=1 << 33, read_bytes_per_s=1e7, write_bytes_per_s=1e7)
    return replace(board(sram_bytes), clock_hz=100_000_000, card=card)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scheduler": "first"}, r"strategy.scheduler=first: choose best or swapnn"),
        ({"frames": -1}, r"strategy.frames=-1"),
        ({"buffer_bytes": 1}, r"strategy.buffer_bytes=1: at least 16"),
        ({"scheduler": "swapnn", "buffer_bytes": 16}, r"strategy\.buffer_bytes=16 is too small"),
        ({"ahead_bytes": 512}, r"strategy.ahead_bytes=512: 0, or two blocks"),
        ({"ahead_bytes": 1100}, r"strategy.ahead_bytes=1100: 0, or two"),
        ({"flush_bytes": 1}, r"strategy.flush_bytes=1: 0, or at least a row"),
        ({"flush_bytes": 9, "ahead_bytes": 9}, r"flush_bytes: not beside strategy.ahead"),
        ({"pools": (1, 2)}, r"strategy.pools=\[1, 2\]: three shares"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ThimbleError, match=message):
        Swap(**settings).plan(GRAPH, with_card(4096))


def test_a_board_without_a_card_is_refused() -> None:
    with pytest.raises(ThimbleError, match="test has none; try hardware=stm32f746g_sd"):
        Swap().plan(GRAPH, replace(with_card(), card=Card()))


@both
def test_arenas_and_cards_have_the_boards_names(scheduler: Any) -> None:
    """On a board whose arena lies in a memory of its own, nothing lies in the chip's."""
    outside = MemoryRegion("dram", 0, 1 << 16, external=True)
    hardware = replace(with_card(64), regions=(outside,), activations_in="sdram")
    plan = Swap(scheduler=scheduler, buffer_bytes=2048).plan(GRAPH, hardware)
    assert {buffer.memory for buffer in plan.buffers} == {"dram", "flash", "card"}
    assert verify(plan, GRAPH).steps


@both
def test_an_input_of_two_axes_is_moved_whole(scheduler: Any) -> None:
    graph = Chain("signal", (5, 7)).dense(4).graph(np.random.default_rng(0))
    checked(Swap(scheduler=scheduler, buffer_bytes=256).plan(graph, with_card()), graph)


@both
def test_every_step_names_a_kernel_that_takes_it(scheduler: Any) -> None:
    hardware = replace(with_card(), core="cortex_m", cpu="cortex-m7")
    plan = Swap(scheduler=scheduler, buffer_bytes=2048).plan(GRAPH, hardware)
    steps = [step for step, _ in unroll(plan.tracks[0].steps, {}) if isinstance(step, Compute)]
    assert {step.op for step in steps} == {op.name for op in GRAPH.operators}
    for step in set(steps):
        form = Form.of(step, plan.buffer, GRAPH)
        kernel = named(step.kernel, form, hardware)
        assert kernel.accepts(form) and step.unit == kernel.unit(form) and not step.scratch


# --- what does not fit


def network() -> Graph:
    return Chain("net", (12, 12, 4)).conv(8, 3).maximum(2, 2).dense(10).graph()


def report(sram_bytes: int, **keys: Any) -> dict[str, Any]:
    graph, hardware = network(), replace(slow(), sram_bytes=sram_bytes)
    return verdict.check(Swap(buffer_bytes=512, **keys).plan(graph, hardware), graph, hardware)


@pytest.mark.parametrize("frames", quick(1, [1, 3], ci=0))
@both
def test_it_is_a_result_and_one_byte_decides(scheduler: str, frames: int) -> None:
    keys = {"scheduler": scheduler, "frames": frames}
    found = report(300, **keys)
    assert (found["status"], found["resource"]) == ("infeasible", "SRAM")
    assert (needed := found["needed_bytes"]) > found["available_bytes"] == 300
    assert found["makespan_us"] > 0 and "try" in found["advice"]
    assert report(needed, **keys)["status"] == "ok"
    assert report(needed - 1, **keys)["needed_bytes"] == needed


@pytest.mark.ci
def test_a_card_that_is_too_small_is_a_result_with_a_page(tmp_path: Path) -> None:
    graph, hardware = network(), replace(slow(bytes=1024), sram_bytes=4096)
    plan = Swap().plan(graph, hardware)
    found = verdict.check(plan, graph, hardware)
    assert (found["status"], found["resource"]) == ("infeasible", "card")
    assert found["needed_bytes"] > found["available_bytes"] == 1024
    assert found["advice"] == "try fewer channels or a larger card"
    page = write(tmp_path / "plan.html", plan, graph, hardware)
    assert "card" in page and "infeasible" in page


@pytest.mark.parametrize("seed", range(5))
def test_every_chain_has_a_plan_in_the_least_bytes(seed: int) -> None:
    graph, rates = random_chain(seed), Rates(1.0, Transfers(1.0), Transfers(1.0))
    parts = layers(graph)
    least = search.Search(parts, rates).least_bytes
    assert best.Tries(graph, parts, least, 1, rates).found()
    plan = best_plan(graph, 16, 1, rates)
    (sram, *_), (has, *_) = roomy(plan).memories, plan.memories
    assert has.bytes == 16 < sram.bytes <= least


RATES = Rates(0.01, Transfers(0.1, 3.0), Transfers(0.1, 5.0))


def staying_network() -> Graph:
    """10,216 bytes of weights."""
    net = Chain("net", (12, 12, 8)).conv(24, 3, 1, 1).conv(40, 1).maximum(2, 2).conv(20, 3, 1, 1)
    return net.dense(2).graph(np.random.default_rng(7))


def small(sram_bytes: int, flash_bytes: int) -> Hardware:
    """So much flash besides what is left to the program."""
    card = Card(bytes=1 << 33, read_bytes_per_s=1e7, write_bytes_per_s=1e7)
    return replace(board(sram_bytes), flash_bytes=search.CODE_BYTES + flash_bytes, card=card)


def figures(plan: Plan, graph: Graph, hardware: Hardware) -> dict[str, float]:
    return summarized(simulate(plan, graph, hardware), graph, hardware)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best, "TASKS", 0)


@pytest.mark.ci
@pytest.mark.usefixtures("few")
def test_weights_in_flash_are_never_read_from_the_card() -> None:
    graph, hardware = staying_network(), small(9_000, 4_000)
    plan = searched("joint", graph, hardware, 1, best.Aim(flash_bytes=4_000))
    held = int(dict(plan.notes)["weights_in_flash_bytes"])
    flash = [b for b in plan.buffers if b.memory == "flash" and len(b.shape) > 1]
    assert 0 < held == sum(graph.tensors[b.tensor].size for b in flash) <= 4_000
    plain = searched("swap", graph, hardware, 1, best.Aim())
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
    graph, hardware = staying_network(), small(1 << 16, 1 << 16)
    least = arena_bytes(Joint().plan(graph, hardware))
    assert least < arena_bytes(Ordinary().plan(graph, hardware))
    size = least + hardware.stack_reserve_bytes
    for objective in ("memory", "latency"):
        fits = Joint(objective=objective).plan(graph, small(size, 1 << 16))  # type: ignore[arg-type]
        assert not fits.on_card and arena_bytes(fits) <= least
    assert Joint().plan(graph, small(size - 16, 1 << 16)).on_card


@pytest.mark.parametrize("flash_bytes", [0, 5_000])
def test_from_so_much_on_nothing_is_swapped(flash_bytes: int) -> None:
    parts = layers(staying_network())
    least = search.maps_stay_bytes(search.Search(parts, RATES))
    written = []
    for sram in (least, least - 16):
        cut = search.Search(parts, RATES).best(sram, len(parts), search.Share(1.0, 0.0, 1.0, True))
        written.append(sum(each.written_bytes for each in cut))
    assert written[0] == prod(parts[-1].shape) < written[1]
    stay = search.weights_stay_bytes(search.Search(parts, RATES), flash_bytes)
    assert stay >= sum(layer.weight_bytes for layer in parts) - flash_bytes
    weightless = search.Search(staying(parts, {layer.weight for layer in parts}), RATES)
    assert stay <= search.weights_stay_bytes(weightless, 0) + sum(
        layer.weight_bytes for layer in parts
    )


def test_the_bound_counts_what_flash_may_hold() -> None:
    graph = staying_network()
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
    graph = staying_network()
    plans = [Swap(objective=each).plan(graph, hardware) for each in ("latency", "energy")]  # type: ignore[arg-type]
    spent = [figures(plan, graph, hardware)["energy_uj"] for plan in plans]
    assert spent[1] <= spent[0]
    for plan, each in zip(plans, spent, strict=True):
        found = figures(plan, graph, hardware)
        row = trade(str(dict(plan.notes)["trade"]), found["compute_us"], 0, hardware)[0]
        assert row["energy_uj"] == pytest.approx(each, rel=0.02)
        assert row["latency_us"] == pytest.approx(found["makespan_us"], rel=0.02)
