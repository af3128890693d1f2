"""The time of a run with a card: of the calls that were counted, and never far from the plan's; and
lifetimes and energies, of one plan and of those tried: by hand, and the paper's figures."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Card, Hardware, Power
from pipeline.plan.tried import Tried
from pipeline.plan.vocabulary import Plan
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets.card import callers, counted, own_cycles
from pipeline.targets.layers import owners
from pipeline.targets.runs import Runs
from pipeline.timing.claims import claim
from pipeline.timing.counted import LATENCY, latency
from pipeline.timing.energy import energy
from pipeline.timing.simulate import Timeline, simulate
from pipeline.timing.states import States
from pipeline.timing.tasks import TimedStep
from pipeline.timing.trade import trade
from pipeline.timing.wear import wear, written
from tests.codegen.int8.support import frames
from tests.strategies.nets import Net
from tests.strategies.swap.nets import Chain
from tests.strategies.zoo import network as zoo
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated
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
        return [found[name] for name in (*LATENCY, "run_throughput_loss_pct")]

    low, middle, high, loss_pct = taken([[5, 10, 20]] * 7 + [[6, 1010, 20]])
    assert middle == 8 * (2 + 10) + 2 + 1000 + result_us
    assert loss_pct == pytest.approx(100 * (1 - (7 * 10 + 1010) / (middle - result_us)))
    assert (low, high) == (8 * (2 + 5) + 2 + 1 + result_us, 8 * (2 + 20) + 2 + result_us)
    assert taken([[40, 80, 160]])[:3] == [8 * (2 + n) + 2 + result_us for n in (5, 10, 20)]
    assert latency(plan, graph, hardware, {}) == {}


def chain() -> Graph:
    net = Chain("net", (32, 32, 16)).conv(32, 3, 1, 1).maximum(2, 2).conv(64, 3, 1, 1)
    return net.conv(64, 3, 2, 1).dense(40).graph(np.random.default_rng(0))


def branches() -> Graph:
    net = Net((24, 24, 8))
    x = net.conv("input", 24, 3)
    x = net.add(net.conv(net.conv(x, 24, 3), 24, 3), x)
    net.dense(net.average(net.conv(net.conv(x, 48, 3, 2), 48, 3)), 10)
    return net.graph()


def run(
    folder: Path, graph: Graph, hardware: Hardware, together: int = 1
) -> tuple[Plan, Runs, float]:
    """The plan, its run with the graph's answers, and by how many percent it is longer."""
    plan, names = Swap(frames=together).plan(graph, hardware), [op.name for op in graph.operators]
    size, given = built(folder, graph, hardware, plan), frames(graph, 2 + together)[2:]
    runs = simulated(folder, graph, hardware, size, given[None])
    assert (outputs(graph, runs) == graph.evaluate(given)).all()
    device = {"beside_card": counted(runs.modelled_cycles, names)}
    took_us = latency(plan, graph, hardware, device)["latency_us"]
    planned_us = simulate(plan, graph, hardware).makespan_us / together
    return plan, runs, 100 * (planned_us / took_us - 1)


@needs_arm
@pytest.mark.parametrize(
    ("network", "sram_bytes", "security", "together"),
    quick(0, [(chain, 30_144, "integrity", 1), (branches, 20_032, "unchecked", 2),
              (branches, 20_032, "none", 1), (chain, 30_144, "unchecked", 4)], ci=2),
)  # fmt: skip
def test_tracks_are_timed_as_they_run(
    tmp_path: Path, network: Callable[[], Graph], sram_bytes: int, security: Security, together: int
) -> None:
    """With an instruction a cycle, which the simulated card's clock counts, too, it is the run's
    own time, within 3 %; the core waits for a twentieth of it or more. What begins and ends
    transfers, and seals, keeps both tracks."""
    graph, board = network(), board_named("stm32f746g_sd")
    board = replace(board, card=replace(board.card, security=security))
    sealing_bytes = board.card.kept_bytes
    hardware = replace(board, sram_bytes=sram_bytes + sealing_bytes, stack_reserve_bytes=6_144)
    plan, runs, error_pct = run(tmp_path, graph, hardware, together)
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
    found_us = together * latency(plan, graph, hardware, device)["latency_us"] + card / 216
    virtual_us = int(runs.instructions[0]) / 216
    assert found_us == pytest.approx(virtual_us, rel=0.03)
    assert found_us > 1.05 * (virtual_us - waits / 216) > 0


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "together"),
    [
        *((name, 1) for name in ("resnet18", "googlenet", "vgg16")),
        ("mobilenet_v1", 2),
        ("alexnet", 2),
    ],
)
def test_a_plan_says_what_its_run_takes_within_3_percent(
    tmp_path: Path, name: str, together: int
) -> None:
    """``docs/swap.md``'s networks, whole: minutes of a core each."""
    hardware = replace(board_named("stm32f746g_sd"), sram_bytes=320_000)
    assert abs(run(tmp_path, zoo(name), hardware, together)[2]) <= 3


def test_wear_by_hand() -> None:
    """1 MB in 864 s is 100 MB a day; 1 GB of 1,000 and 10 cycles. Nothing written lasts."""
    card = Card(bytes=10**9, endurance_cycles=1000, first_failure_cycles=10)
    found = wear(1e6, 864e6, card)
    assert found.bytes_a_day == pytest.approx(1e8)
    assert found.years_half == pytest.approx(5e11 / 1e8 / 365)
    assert found.years_first_failure == pytest.approx(1e10 / 1e8 / 365)
    found = wear(0, 1e6, Card(bytes=10**9, first_failure_cycles=1))
    assert found.years_half is None and found.years_first_failure is None
    assert wear(1e6, 1e6, Card(bytes=10**9)).years_first_failure is None


def by_hand(*places: tuple[int, int]) -> Timeline:
    """Writes of ranges of the card's bytes, a microsecond each, out of their steps' order."""
    ends = np.array(places[::-1]).reshape(-1, 2)
    sizes = ends[:, 1] - ends[:, 0]
    task = TimedStep("write", "x", np.ones(len(ends)), bytes=sizes, stored=512 * -(-sizes // 512),
                     ends=ends)  # fmt: skip
    start = np.arange(len(ends), dtype=float)[::-1]
    none = np.zeros(len(ends), np.int64)
    return Timeline(
        tasks=(task,), track=none, task=none, run=np.arange(len(ends)), start=start,
        stop=start + 1, makespan_us=9.0, frames=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("places", "opened"),
    [
        ((), 0),
        (((0, 100), (100, 1000)), 1),  # one unit stays open
        (((0, 1000), (1000, 2000), (2000, 3000)), 3),  # 1000 to 1024 is still in the first
        (((0, 10), (4096, 4106), (20, 30)), 3),  # opened again
        (((0, 4096),), 4),
    ],
)
def test_a_card_with_one_open_unit_copies_it_when_another_is_written(
    places: tuple[tuple[int, int], ...], opened: int
) -> None:
    card = Card(bytes=1 << 20, erase_bytes=1024)
    found = written(by_hand(*places), card, input_bytes=600)
    blocks = sum(512 * -(-(stop - start) // 512) for start, stop in places)
    asked = 600 + sum(stop - start for start, stop in places)
    assert found.stored == 1024 + blocks and found.asked == asked
    assert found.erased == max(1024 * (1 + opened), found.stored)
    assert found.block_amplification == found.stored / asked
    assert found.erase_amplification == found.erased / asked >= found.block_amplification


def test_energy_by_state() -> None:
    card = Card(bytes=1, read_ma=10.0, write_ma=30.0, idle_ma=1.0)
    board = replace(slow(), power=Power(2.0, 100.0, 20.0, "test"), card=card)
    found = energy(
        States(1000, 2000, 3000, 4000, computing_us=4000, read_us=2500, write_us=2500), board
    )
    assert found.compute_uj == pytest.approx(2.0 * 101 * 1)  # V * mA * ms
    assert found.io_uj == pytest.approx(2.0 * (20 + 20) * 2)
    assert found.both_uj == pytest.approx(2.0 * (100 + 20) * 3)
    assert found.idle_uj == pytest.approx(2.0 * 21 * 4)
    assert found.total_uj == pytest.approx(202 + 160 + 720 + 168)

    unknown = replace(slow(), power=Power(3.3, 0, 0, "none"))  # gives no energy
    assert energy(States(1, 1, 1, 1, 1, 1, 1), unknown).total_uj == 0


# --- what follows from the paper's printed figures

ENERGY = {"wh": [0.07, 0.10], "seconds": [178, 213]}


def test_the_papers_energy_is_time_and_power() -> None:
    """+42 % is +20 % of time at +19 % of power, on a board of 1.4 W."""
    parts = {name: claim(f"{name}_pct", ENERGY) for name in ("energy", "time", "power")}
    assert parts["energy"] == pytest.approx(42, abs=1)
    assert parts["time"] == pytest.approx(19.7, abs=0.1)
    assert parts["power"] == pytest.approx(19.4, abs=0.1)
    factors = [1 + (value or 0) / 100 for value in parts.values()]
    assert factors[0] == pytest.approx(factors[1] * factors[2])
    assert claim("board_watt", ENERGY) == pytest.approx(1.4, abs=0.02)


def test_lifetimes_scale_with_the_card() -> None:
    small = {"gb_a_day": 2.0, "card_gb": 4, "tb": 6.5, "of_gb": 4}
    large = claim("wear_years_first_failure", {**small, "card_gb": 64})
    assert large == pytest.approx(16 * (claim("wear_years_first_failure", small) or 0))
    half = {"gb_a_day": 123, "card_gb": 64 * 1.048576, "cycles": 10_000}
    assert claim("wear_years_half", half) == pytest.approx(7.47, abs=0.01)


@pytest.mark.parametrize(("metric", "of"), [("guess", {}), ("energy_pct", {"wh": [1, 2]})])
def test_what_does_not_follow_is_refused(metric: str, of: dict[str, object]) -> None:
    with pytest.raises(ThimbleError, match=f"paper: {metric} does not follow"):
        claim(metric, of)


# --- plans that were tried

BOARD = board_named("stm32f746g_sd")
POWER = Power(supply_volt=2.0, active_ma=50.0, idle_ma=20.0, source="made up")
CARD = replace(BOARD.card, read_ma=100.0, write_ma=40.0, idle_ma=10.0)
HARDWARE = replace(BOARD, power=POWER, card=CARD)
FAST, SPARING, WORSE = Tried(1000, 500, 100, 64), Tried(1100, 300, 0, 0), Tried(1200, 400, 100, 64)


def test_a_plan_is_first_and_the_others_are_not_worse_in_all() -> None:
    rows = trade(";".join(map(str, (WORSE, SPARING, FAST, WORSE))), 800, 8, HARDWARE)
    assert [row["latency_us"] for row in rows] == [1200, 1000, 1100]
    assert [row["written_bytes"] for row in rows] == [72, 72, 8]
    years = [row["years_first_failure"] or 0.0 for row in rows]
    assert years[2] == pytest.approx(years[1] * 72 / 8 * 1100 / 1000)


@pytest.mark.parametrize("tried", [FAST, SPARING, Tried(5000, 500, 100, 0)])
def test_energy_is_that_of_each_engine_busy_and_waiting(tried: Tried) -> None:
    assert Tried.of(str(tried)) == tried
    (row,) = trade(str(tried), 800, 0, HARDWARE)
    waits_us = tried.latency_us - tried.read_us - tried.write_us
    core = 50 * 800 + 20 * (tried.latency_us - 800)
    card = 100 * tried.read_us + 40 * tried.write_us + 10 * waits_us
    assert row["energy_uj"] == pytest.approx(2e-3 * (core + card))


def test_a_core_without_dma_is_busy_while_the_card_is() -> None:
    hardware = replace(HARDWARE, card=replace(CARD, dma=False))
    (row,) = trade(str(Tried(2000, 500, 100, 0)), 800, 0, hardware)
    core = 50 * (800 + 600) + 20 * 600
    assert row["energy_uj"] == pytest.approx(2e-3 * (core + 100 * 500 + 40 * 100 + 10 * 1400))
