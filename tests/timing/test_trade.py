"""Time, energy and wear of plans that were tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.hardware import Power
from pipeline.plan.tried import Tried
from pipeline.timing.trade import trade
from tests.targets.cortex_m import board_named

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
