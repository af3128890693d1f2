"""No nonce meets two messages: not over frames, inferences that begin again, commands that are
tried again while an input is fed, failures, cuts of power and starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.sealing import Security
from tests.codegen.card.faulty import FAULTS, Fault, Kind, Way, Where, faulty
from tests.codegen.card.sealing import KEY
from tests.codegen.card.tries import images
from tests.targets.cortex_m import needs_arm
from tests.tiers import quick

pytestmark = needs_arm
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
    frames, found = images(made.program.graph, len(TRIES) + 1), list[tuple[bytes, ...]]()
    cut = Fault(Kind.CUT, made.commands(True, 1) + made.fed + 2, 100, 1)
    starts = ([NONE, AGAIN, FAILS, NONE], [cut], TRIES, [AGAIN, NONE], [])
    for number, faults in enumerate(starts):
        replies = made.replies(frames, faults, tmp_path / "run", begins=number == 0)
        assert (len(replies) == len(frames)) == (faults != [cut])
        written = (tmp_path / "run" / "nonces").read_bytes()
        for at in range(0, len(written), sum(SIZES)):
            record = written[at : at + sum(SIZES)]
            found.append((record[:32], record[32:44], record[44:]))
    assert len(found) > 3 * len(frames) * (made.writes + made.fed)
    assert len({(key, nonce) for key, nonce, _ in found}) == len(found)  # sealed once, too
    assert {int.from_bytes(nonce[4:8], "little") for _, nonce, _ in found} == {1, 2, 3, 4, 5}
    pieces = len(frames) * (made.writes + made.fed)  # the same ones at each start
    assert pieces // 2 < len({content for *_, content in found}) <= pieces
    assert {key for key, *_ in found}.isdisjoint({KEY})
