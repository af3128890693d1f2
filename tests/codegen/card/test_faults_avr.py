"""A sample of ``tests.codegen.card.campaign_avr``: an Uno whose card lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.sealing import Security
from pipeline.targets.protocol import Status
from tests.codegen.card import campaign_avr
from tests.codegen.card.campaign import POWER
from tests.codegen.card.faulty_avr import Fault, FaultyUno, Kind, faulty_uno
from tests.codegen.card.support import given
from tests.codegen.card.tries import judged
from tests.targets.conftest import needs_avr
from tests.tiers import quick

pytestmark = [needs_avr, pytest.mark.ci]
SAMPLE, CUTS, TRIED = 18, 2, 8


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> FaultyUno:
    return faulty_uno(tmp_path_factory.mktemp("made"))


def test_faults_are_repaired_or_end_with_their_status(made: FaultyUno, tmp_path: Path) -> None:
    found = campaign_avr.injected(made, SAMPLE, 279, tmp_path)
    assert len({name.rsplit(": ", 1)[0].partition(":")[0] for name in found}) >= 10
    can, repaired, wrong = judged(found)
    assert repaired == can > SAMPLE // 3 and not wrong


def test_faults_while_an_input_is_fed(made: FaultyUno, tmp_path: Path) -> None:
    can, repaired, wrong = judged(campaign_avr.fed(made, TRIED, 1, tmp_path))
    assert repaired == can > TRIED // 3 and not wrong


@pytest.mark.parametrize("security", quick(0, ["none", "unchecked"], ci=1))
def test_the_driver_tries_each_command_four_times(tmp_path: Path, security: Security) -> None:
    """In whichever function; what comes when it gives up is another status, or the answer."""
    made = faulty_uno(tmp_path, security, tells=True)
    every = list(campaign_avr.tries(made, tmp_path))
    assert len({name.rpartition(" ")[2] for name, *_ in every}) == 4  # nothing is taken
    can, repaired, wrong = judged(campaign_avr.tried(made, TRIED, 1, tmp_path))
    assert repaired == can > TRIED // 3 and not wrong


def test_after_a_power_cut_the_next_start_is_right(made: FaultyUno, tmp_path: Path) -> None:
    assert campaign_avr.cut(made, CUTS, 1, tmp_path) == {f"{POWER}: the next start is right": CUTS}


def test_frames_after_it_are_right(made: FaultyUno, tmp_path: Path) -> None:
    """After one whose input was lost, and, as soon as it is there, one whose card was away."""
    frames = given(made.program.graph, 4)
    for fault, status in (
        (Fault(Kind.FLIP_CARD, made.begins, 9, made.input[0]), Status.INPUT_LOST),
        (Fault(Kind.GONE, made.begins + 1, 800), Status.NO_CARD),
    ):
        (first, second, _, last), told = made.replies(frames, fault, tmp_path)
        assert told.came and second.status == status and not second.payload
        assert made.program.right(first, frames[0]) and made.program.right(last, frames[3])


def test_sums_take_no_more_sram_than_is_said(made: FaultyUno) -> None:
    size = made.program.size
    assert size.ram_objects["nn_sums"] >= 2 * len(made.maps)
    assert size.status == "ok" and size.sram_bytes <= made.program.hardware.sram_bytes
