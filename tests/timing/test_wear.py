"""Lifetimes and energies, of one plan and of those tried: by hand, and the paper's figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Card, Power
from pipeline.plan.tried import Tried
from pipeline.timing.claims import claim
from pipeline.timing.energy import energy
from pipeline.timing.simulate import Timeline
from pipeline.timing.states import States
from pipeline.timing.tasks import TimedStep
from pipeline.timing.trade import trade
from pipeline.timing.wear import half_bytes, wear, written, years
from tests.targets.cortex_m import board_named
from tests.timing.test_simulate import slow

GB, TB = 1e9, 1024e9
"""The paper's, where 1 TB is 1024 GB."""


@pytest.mark.parametrize(
    ("gb_a_day", "first", "half"),
    [(123, (2.4, 4.5), 7.5), (2.8, (104, 200), 328), (2.0, (145, 280), 460)],
)
def test_the_papers_lifetimes(gb_a_day: float, first: tuple[float, float], half: float) -> None:
    """Section 5.4: MobileNet, AlexNet and VGG16 on 64 GB; 6.5 to 12.5 TB on a card of 4 GB."""
    for tb, printed in zip((6.5, 12.5), first, strict=True):
        assert years(gb_a_day * GB, 64 / 4 * tb * TB) == pytest.approx(printed, rel=0.02)
    written = half_bytes(64 * 1.048576 * GB, 10_000)
    assert years(gb_a_day * GB, written) == pytest.approx(half, rel=0.02)


def test_wear_by_hand() -> None:
    """1 MB in 864 s is 100 MB a day; 1 GB of 1,000 and 10 cycles."""
    card = Card(bytes=10**9, endurance_cycles=1000, first_failure_cycles=10)
    found = wear(1e6, 864e6, card)
    assert found.bytes_a_day == pytest.approx(1e8)
    assert found.years_half == pytest.approx(5e11 / 1e8 / 365)
    assert found.years_first_failure == pytest.approx(1e10 / 1e8 / 365)


def by_hand(*places: tuple[int, int]) -> Timeline:
    """Writes of whole ranges of the card's bytes, a microsecond each, in another order than that of
    their steps."""
    ends = np.array(places[::-1]).reshape(-1, 2)
    sizes = ends[:, 1] - ends[:, 0]
    task = TimedStep("write", "x", np.ones(len(ends)), bytes=sizes, stored=512 * -(-sizes // 512),
                     ends=ends)  # fmt: skip
    start = np.arange(len(ends), dtype=float)[::-1]
    none = np.zeros(len(ends), np.int64)
    return Timeline((task,), none, none, np.arange(len(ends)), start, start + 1, 9.0, 1)


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


def test_nothing_written_lasts() -> None:
    found = wear(0, 1e6, Card(bytes=10**9, first_failure_cycles=1))
    assert found.years_half is None and found.years_first_failure is None
    assert wear(1e6, 1e6, Card(bytes=10**9)).years_first_failure is None


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


def test_unknown_currents_give_no_energy() -> None:
    unknown = replace(slow(), power=Power(3.3, 0, 0, "none"))
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


def test_it_is_read_as_it_was_written() -> None:
    assert Tried.of(str(FAST)) == FAST
