"""Lifetimes and energies, by hand and against the paper's printed figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.hardware import Card, Power
from pipeline.timing.energy import energy
from pipeline.timing.simulate import Timeline
from pipeline.timing.states import States
from pipeline.timing.tasks import TimedStep
from pipeline.timing.wear import half_bytes, wear, written, years
from tests.timing.toys import slow

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
