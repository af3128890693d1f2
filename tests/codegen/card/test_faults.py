"""A card that lies, a sample of ``tests.codegen.card.campaign``: no wrong answer, what can be
repaired is, and the rest ends with a status that says what to do, on an Uno, too; no nonce meets
two messages; what is used as it should not be ends with a status."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.card.sealed import Sealed
from pipeline.graph.graph import Graph
from pipeline.plan.repair import Repair
from pipeline.sealed_image import seal
from pipeline.sealing import Security
from pipeline.strategies.swap import Swap
from pipeline.targets.card import CHIP_KEY, NAME
from pipeline.targets.protocol import Status
from tests.codegen.card import campaign, faulty_avr, tries
from tests.codegen.card.campaign import POWER
from tests.codegen.card.faulty_avr import FaultyUno, faulty_uno
from tests.codegen.card.support import (
    FAULTS,
    KEY,
    Fault,
    Faulty,
    Kind,
    Way,
    Where,
    board,
    elements,
    faulty,
    given,
    large,
)
from tests.codegen.card.tries import (
    DRAWN,
    KEYED,
    LOST,
    REPAIRED,
    WRONG,
    Case,
    Counts,
    drawn,
    end,
    images,
    judged,
)
from tests.strategies.swap.nets import random_chain
from tests.targets.conftest import needs_avr
from tests.targets.cortex_m import generated, needs_arm
from tests.tiers import quick

pytestmark = needs_arm
SAMPLE, CUTS, TRIED = 70, 3, 300
ON_M7, ON_UNO = 12, 8
REFUSED, NN_CARD_FAILED = 3, 5
"""Statuses of fixture/faults.c, and of model.h."""


def all_repaired(found: Counts, least: int) -> bool:
    """Check whether all that can be repaired were, more than ``least``, and none ended wrong."""
    can, repaired, wrong = judged(found)
    return repaired == can > least and not wrong


@pytest.fixture(scope="module", params=quick(1, ["encrypted", "none", "integrity"]))
def sealed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Faulty:
    return faulty(tmp_path_factory.mktemp("made"), request.param)


@pytest.fixture(scope="module")
def made(sealed: Faulty) -> Faulty:
    """The native program: the same C in a tenth of the time."""
    return sealed.natively()


@pytest.mark.ci
def test_faults_are_repaired_or_end_with_their_status(made: Faulty, tmp_path: Path) -> None:
    found = campaign.injected(made, SAMPLE, 2, tmp_path)
    names = {name.rsplit(": ", 1)[0] for name in found}
    assert len(names) == DRAWN - KEYED * (not made.keyed)
    assert all_repaired(found, SAMPLE // 3)


@pytest.mark.slow
@pytest.mark.parametrize("sealed", ["encrypted"], indirect=True)
def test_on_a_cortex_m7(sealed: Faulty, tmp_path: Path) -> None:
    for part in (campaign.injected, campaign.tried, campaign.fed):
        assert all_repaired(part(sealed, ON_M7, 2, tmp_path), 1)
    assert campaign.cut(sealed, 1, 1, tmp_path) == {f"{POWER}: the next start is right": 1}


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
    found = tries.judged_frames(made, cases, tmp_path, rng)
    assert found == {f": {REPAIRED}": 3 * made.fed, ": card_failed": 3 * made.fed}
    frames = tries.images(made.program.graph, len(cases) + 1, np.random.default_rng(0))
    written = (tmp_path / "written").read_bytes()
    assert tries.in_clear(frames, written) == (made.security != "encrypted")


def test_each_command_is_tried_three_times_in_each_function(made: Faulty, tmp_path: Path) -> None:
    found = campaign.tried(made, TRIED, 1, tmp_path)
    assert all_repaired(found, TRIED // 3)
    assert len({name.partition(":")[0] for name in found}) == 5  # nn_init, also the first one
    assert all_repaired(campaign.fed(made, SAMPLE, 1, tmp_path), SAMPLE // 4)


@pytest.mark.ci
@pytest.mark.parametrize("taken", [None, large()])
def test_without_checks_the_first_failure_ends_with_its_status(
    tmp_path: Path, taken: Graph | None
) -> None:
    """nn_take says it as often as it is asked."""
    made = faulty(tmp_path / "made", "unchecked", taken=taken).natively()
    found = campaign.tried(made, TRIED, 1, tmp_path / "run")
    assert found and all(name.endswith((": card_failed", ": no_card")) for name in found)
    fault = Fault(Kind.TRY, 1, 1, where=Where.TAKE)
    made.replies(tries.images(made.program.graph, 1), [fault], tmp_path / "run")
    said = {ran.block for ran in made.ran(tmp_path / "run") if ran.direction == REFUSED}
    assert said == ({NN_CARD_FAILED} if taken else set())


def test_after_a_power_cut_the_next_start_is_right(made: Faulty, tmp_path: Path) -> None:
    assert campaign.cut(made, CUTS, 1, tmp_path) == {f"{POWER}: the next start is right": CUTS}


@pytest.fixture(scope="module")
def uno(tmp_path_factory: pytest.TempPathFactory) -> FaultyUno:
    return faulty_uno(tmp_path_factory.mktemp("uno"))


@needs_avr
@pytest.mark.ci
def test_on_an_uno(uno: FaultyUno, tmp_path: Path) -> None:
    """The driver tries each command four times, then another status comes, or the answer."""
    found = campaign.injected(uno, 18, 279, tmp_path)
    assert len({name.partition(":")[0] for name in found}) >= 10 and all_repaired(found, 6)
    for part in (campaign.fed, campaign.tried):
        assert all_repaired(part(uno, ON_UNO, 1, tmp_path), ON_UNO // 3)
    every = {case.name.rpartition(" ")[2] for case in faulty_avr.tries(uno, tmp_path)}
    assert len(every) == 4  # nothing is taken
    assert campaign.cut(uno, 2, 1, tmp_path) == {f"{POWER}: the next start is right": 2}
    size = uno.program.size
    assert size.ram_objects["nn_sums"] >= 2 * len(uno.maps)
    assert size.status == "ok" and size.sram_bytes <= uno.program.hardware.sram_bytes


@needs_avr
@pytest.mark.ci
def test_on_an_uno_frames_after_it_are_right(uno: FaultyUno, tmp_path: Path) -> None:
    """After one whose input was lost, and, as soon as it is there, one whose card was away."""
    frames = given(uno.program.graph, 4)
    for fault, status in (
        (faulty_avr.Fault(faulty_avr.Kind.FLIP_CARD, uno.begins, 9, uno.input[0]), "INPUT_LOST"),
        (faulty_avr.Fault(faulty_avr.Kind.GONE, uno.begins + 1, 800), "NO_CARD"),
    ):
        (first, second, _, last), told = uno.replies(frames, fault, tmp_path)
        assert told.came and second.status == Status[status] and not second.payload
        assert uno.program.right(first, frames[0]) and uno.program.right(last, frames[3])


def test_a_fault_that_is_not_caught_would_be_seen(made: Faulty, tmp_path: Path) -> None:
    """The campaign's own judgement: of an answer to another frame, and of another status."""
    frames = given(made.program.graph, 2)
    first, second = made.replies(frames, [], tmp_path)
    any_case = drawn(made, np.random.default_rng(0))
    assert end(made.program, any_case.expected, frames[0], first) == REPAIRED
    assert end(made.program, any_case.expected, frames[0], second) == WRONG
    case = Case("", Fault(Kind.FAIL, 3, 40), frozenset({Status.OK}))
    (failed,) = made.replies(frames[:1], [case.fault], tmp_path)
    assert end(made.program, case.expected, frames[0], failed) == f"{LOST}, card_failed"


def lost_writes(made: Faulty) -> list[Fault]:
    """Each piece of each map, one a frame: a loss at every place of repair."""
    return [Fault(Kind.LOST_WRITE, command) for command in range(made.writes)]


def test_a_lost_map_is_made_again_from_its_layer(made: Faulty, tmp_path: Path) -> None:
    """At every place: what is before it is neither computed nor written again."""
    graph, plan = made.program.graph, made.program.plan
    sealed, repair = Sealed.of(graph, plan, made.program.hardware), Repair.noted(plan, graph)
    assert sealed is not None and len(repair.places) > 2
    numbers = {piece.block: n for n, piece in enumerate(sealed.pieces) if piece.block}
    parts = [0, *sealed.context(plan.buffer[plan.inputs[0]], repair)["parts"]]
    frames, faults = images(graph, made.writes), lost_writes(made)
    replies = made.replies(frames, faults, tmp_path)
    assert all(map(made.program.right, replies, frames))
    every, begun = made.ran(tmp_path), set[int]()
    for frame in range(made.writes):
        ran = [r for r in every if (r.frame, r.where) == (frame, Where.INVOKE)]
        written = [numbers[r.block] for r in ran if r.direction == 1]
        begin = next(n for n, piece in enumerate(written) if piece in written[:n])
        first = max(part for part in parts if part <= written[frame])
        assert sorted(written[begin:]) == [n for n in sorted({*written}) if n >= first]
        begun.add(first)
    assert begun == set(parts)


NONCES = FAULTS.with_name("nonces.c")
SIZES = (32, 12, 8)
NONE, AGAIN, FAILS = Fault(Kind.NONE), Fault(Kind.LOST_WRITE, 3), Fault(Kind.FAIL, 4, 1 << 20)
"""Nothing happens; the inference begins again; and it fails in the end."""
TRIES = [
    Fault(Kind.TRY, command, times, way, where=where)
    for where in (Where.FEED, Where.INVOKE)
    for command, times, way in ((0, 1, Way.LATE), (1, 2, Way.UNDONE), (5, 3, Way.LATE))
]


@pytest.mark.parametrize(
    ("security", "native"),
    quick(0, [("encrypted", True), ("integrity", True), ("encrypted", False)], ci=2),
)
def test_no_nonce_meets_two_messages(tmp_path: Path, security: Security, native: bool) -> None:
    made = faulty(tmp_path / "made", security, besides={"aead_seal": NONCES})
    made = made.natively() if native else made
    lost = lost_writes(made)
    frames, found = images(made.program.graph, len(lost) + 1), list[tuple[bytes, ...]]()
    cut = Fault(Kind.CUT, made.commands(True, 1) + made.fed + 2, 100, 1)
    starts = ([NONE, AGAIN, FAILS, NONE], [cut], TRIES, [AGAIN, NONE], lost, [])
    for number, faults in enumerate(starts):
        replies = made.replies(frames, faults, tmp_path / "run", begins=number == 0)
        assert (len(replies) == len(frames)) == (faults != [cut])
        written = (tmp_path / "run" / "nonces").read_bytes()
        for at in range(0, len(written), sum(SIZES)):
            record = written[at : at + sum(SIZES)]
            found.append((record[:32], record[32:44], record[44:]))
    assert len(found) > 3 * len(frames) * (made.writes + made.fed)
    assert len({(key, nonce) for key, nonce, _ in found}) == len(found)  # sealed once, too
    assert {int.from_bytes(nonce[4:8], "little") for _, nonce, _ in found} == {1, 2, 3, 4, 5, 6}
    pieces = len(frames) * (made.writes + made.fed)  # the same ones at each start
    assert pieces // 2 < len({content for *_, content in found}) <= pieces
    assert {key for key, *_ in found}.isdisjoint({KEY})


MISUSE = FAULTS.with_name("misuse.c")
HOLE = ["NN_OK", "NN_CARD_FAILED", "NN_OK", "NN_INCOMPLETE", "NN_OK", "NN_INCOMPLETE"]
USED_UP = ["NN_NO_KEY", "NN_NO_KEY", "NN_OK", "NN_OK", "NN_OK", "NN_NO_KEY", "NN_OK", "NN_OK"]
"""First the input gets no number of a frame any more, then what is computed."""


@pytest.mark.parametrize(
    "security",
    ("encrypted", *(pytest.param(s, marks=pytest.mark.ci) for s in ("none", "unchecked"))),
)
def test_frames_with_a_hole_and_used_up_numbers_are_refused(
    tmp_path: Path, security: Security
) -> None:
    """Whoever finds the card again; the next frame is right."""
    graph = random_chain(1)
    hardware = board(security, elements(graph) // 3)
    sources = generated(tmp_path, graph, hardware, Swap().plan(graph, hardware))
    if hardware.card.keyed:
        seal(sources, KEY, tmp_path / NAME)
        (tmp_path / CHIP_KEY).write_bytes(KEY)
    else:
        (sources / NAME).rename(tmp_path / NAME)
    others = [str(path) for path in sources.glob("*.c") if path.name not in ("main.c", "model.c")]
    command = ["cc", "-std=gnu99", f"-I{sources}", str(MISUSE), *others]
    command += ["-Wl,--wrap=block_device_start", "-o", "misuse"]
    subprocess.run(command, cwd=tmp_path, check=True)
    frame = given(graph, 1)
    sent = frame.astype(np.int8).tobytes()
    done = subprocess.run(["./misuse"], input=sent, cwd=tmp_path, capture_output=True, check=True)
    found = [int(word) for word in done.stdout.split()]
    names = statuses((sources / "model.h").read_text())
    expected = [*HOLE, *(USED_UP if hardware.card.keyed else ()), "NN_OK"]
    assert [names[n] for n in found[: len(expected)]] == expected
    assert found[len(expected) :] == graph.evaluate(frame).reshape(-1).tolist()


def statuses(header: str) -> list[str]:
    """List the names of nn_status_t, by number."""
    listed = header[: header.index("} nn_status_t")].rpartition("enum {")[2]
    return [line.split(",")[0].split()[0] for line in listed.splitlines() if "NN_" in line]
