"""A card that lies, a sample of ``tests.codegen.card.campaign``: no wrong answer, what can be
repaired is, and the rest ends with a status that says what to do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.targets.protocol import Status
from tests.codegen.card import campaign, tries
from tests.codegen.card.campaign import POWER, Record, drawn, kinds
from tests.codegen.card.cases import LOST, REPAIRED, WRONG, Case, Counts, ended, judged
from tests.codegen.card.faulty import Fault, Faulty, Kind, Where, faulty
from tests.codegen.card.sealing import given
from tests.codegen.card.test_large_results import large
from tests.targets.cortex_m import needs_arm

pytestmark = needs_arm
SAMPLE, CUTS, TRIED = 70, 3, 300
ON_M7 = 12
REFUSED, NN_CARD_FAILED = 3, 5
"""Of fixture/faults.c, and of model.h."""


@pytest.fixture(
    scope="module",
    params=["encrypted", *(pytest.param(s, marks=pytest.mark.ci) for s in ("none", "integrity"))],
)
def sealed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Faulty:
    return faulty(tmp_path_factory.mktemp("made"), request.param)


@pytest.fixture(scope="module")
def made(sealed: Faulty) -> Faulty:
    """The native program: the same C in a tenth of the time."""
    return sealed.natively()


@pytest.mark.ci
def test_faults_are_repaired_or_end_with_their_status(made: Faulty, tmp_path: Path) -> None:
    found = campaign.injected(made, SAMPLE, 2, tmp_path)
    assert {name.rsplit(": ", 1)[0] for name in found} == set(kinds(made))
    can, repaired, wrong = judged(found)
    assert repaired == can > SAMPLE // 3 and not wrong


@pytest.mark.slow
@pytest.mark.parametrize("sealed", ["encrypted"], indirect=True)
def test_on_a_cortex_m7(sealed: Faulty, tmp_path: Path) -> None:
    for part, count in ((campaign.injected, ON_M7), (tries.tried, ON_M7), (tries.fed, ON_M7)):
        can, repaired, wrong = judged(part(sealed, count, 2, tmp_path))
        assert repaired == can > 1 and not wrong
    assert campaign.cut(sealed, 1, 1, tmp_path) == {f"{POWER}: the next start is right": 1}


@pytest.mark.slow
def test_more_on_a_cortex_m7(sealed: Faulty, tmp_path: Path) -> None:
    for part in (campaign.injected, tries.tried):
        can, repaired, wrong = judged(part(sealed, SAMPLE, 2, tmp_path))
        assert repaired == can > SAMPLE // 3 and not wrong


def test_what_is_fed_is_sealed_once(made: Faulty, tmp_path: Path) -> None:
    """However often and in whichever way its command fails: the answer is right, or there is none;
    and an input is in clear on the card only where it may be, or is never looked for in vain."""
    rng = np.random.default_rng(0)
    faults = [
        Fault(Kind.TRY, command, times, way, where=Where.FEED)
        for command in range(made.fed)
        for times in (1, 3)
        for way in tries.Way
    ]
    cases = [Case("", fault, tries.ends(made, fault)) for fault in faults]
    found = tries.judged_frames(made, [([], case) for case in cases], tmp_path, rng)
    assert found == {f": {REPAIRED}": 3 * made.fed, ": card_failed": 3 * made.fed}
    frames = tries.images(made.program.graph, len(cases) + 1, np.random.default_rng(0))
    written = (tmp_path / "written").read_bytes()
    assert tries.in_clear(frames, written) == (made.security != "encrypted")


def test_each_command_is_tried_three_times_in_each_function(made: Faulty, tmp_path: Path) -> None:
    found = tries.tried(made, TRIED, 1, tmp_path)
    can, repaired, wrong = judged(found)
    assert repaired == can > TRIED // 3 and not wrong
    assert len({name.partition(":")[0] for name in found}) == 5  # nn_init, also the first one
    can, repaired, wrong = judged(tries.fed(made, SAMPLE, 1, tmp_path))
    assert repaired == can > SAMPLE // 4 and not wrong


@pytest.mark.ci
@pytest.mark.parametrize("taken", [None, large()])
def test_without_checks_the_first_failure_ends_with_its_status(
    tmp_path: Path, taken: Graph | None
) -> None:
    """nn_take says it as often as it is asked."""
    made = faulty(tmp_path / "made", "unchecked", taken=taken).natively()
    found = tries.tried(made, TRIED, 1, tmp_path / "run")
    assert found and all(name.endswith((": card_failed", ": no_card")) for name in found)
    fault = Fault(Kind.TRY, 1, 1, where=Where.TAKE)
    made.replies(tries.images(made.program.graph, 1), [fault], tmp_path / "run")
    said = {ran.block for ran in made.ran(tmp_path / "run") if ran.direction == REFUSED}
    assert said == ({NN_CARD_FAILED} if taken else set())


def test_after_a_power_cut_the_next_start_is_right(made: Faulty, tmp_path: Path) -> None:
    assert campaign.cut(made, CUTS, 1, tmp_path) == {f"{POWER}: the next start is right": CUTS}


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (Fault(Kind.FAIL, 3, 40), Status.CARD_FAILED),
        (Fault(Kind.GONE, 3, 40), Status.NO_CARD),
        (Fault(Kind.READ_ONLY, 1), Status.CARD_FAILED),
        (Fault(Kind.OTHER_CARD, 5, 0, 0), Status.OTHER_CARD),
        (Fault(Kind.OTHER_CARD, 5, 0, 1), Status.INPUT_LOST),
    ],
)
def test_what_does_not_come_back_ends_with_a_status(
    made: Faulty, tmp_path: Path, fault: Fault, status: Status
) -> None:
    """And the next frame is right."""
    frames = given(made.program.graph, 2)
    first, second = made.replies(frames, [fault], tmp_path)
    assert first.status == status and not first.payload
    assert made.program.right(second, frames[1])


def test_a_fault_that_is_not_caught_would_be_seen(made: Faulty, tmp_path: Path) -> None:
    """The campaign's own judgement: of an answer to another frame, and of another status."""
    frames = given(made.program.graph, 2)
    first, second = made.replies(frames, [], tmp_path)
    any_case = drawn(made, np.random.default_rng(0))
    assert ended(made, any_case, frames[0], first) == REPAIRED
    assert ended(made, any_case, frames[0], second) == WRONG
    case = Case("", Fault(Kind.FAIL, 3, 40), frozenset({Status.OK}))
    (failed,) = made.replies(frames[:1], [case.fault], tmp_path)
    assert ended(made, case, frames[0], failed) == f"{LOST}, card_failed"


def test_judgement_counts_what_is_lost_and_what_is_wrong() -> None:
    found = Counter({f"a: {REPAIRED}": 5, f"a: {LOST}, no_card": 2, f"b: {WRONG}": 3, "c: ok": 1})
    assert judged(found) == (7, 5, 3)


def test_an_interrupted_campaign_goes_on_after_its_batches(tmp_path: Path) -> None:
    path, done = tmp_path / "batches", list[int]()

    def counts(firmware: str, seed: int) -> Counts:
        def count() -> Counts:
            done.append(seed)
            return Counter({REPAIRED: seed})

        return Record(path, firmware).counts({"seed": seed}, count)

    assert [counts("one", seed) for seed in (1, 2, 1)] == [{REPAIRED: n} for n in (1, 2, 1)]
    path.write_text(path.read_text()[:-9])  # the power went while the last line was written
    assert counts("one", 2) == {REPAIRED: 2} and counts("one", 1) == {REPAIRED: 1}
    counts("another", 1)
    assert done == [1, 2, 2, 1]
