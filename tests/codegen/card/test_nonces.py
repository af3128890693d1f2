"""No nonce is used twice: not over frames, inferences that begin again, failures and starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.codegen.card.faulty import FAULTS, Fault, Kind, faulty
from tests.codegen.card.sealing import given
from tests.targets.cortex_m import needs_arm

pytestmark = [needs_arm, pytest.mark.ci]
NONCES = FAULTS.with_name("nonces.c")
NONE, AGAIN, FAILS = Fault(Kind.NONE), Fault(Kind.LOST_WRITE, 3), Fault(Kind.FAIL, 4, 1 << 20)
"""Nothing happens; the inference begins again; and it fails in the end."""


def test_no_nonce_is_used_twice(tmp_path: Path) -> None:
    made = faulty(tmp_path / "made", "encrypted", besides={"aead_seal": NONCES})
    frames, found = given(made.program.graph, 4), list[bytes]()
    cut = Fault(Kind.CUT, made.commands(True, 1) + made.fed + 2, 100, 1)
    for number, faults in enumerate(([NONE, AGAIN, FAILS, NONE], [cut], [AGAIN, NONE], [])):
        replies = made.replies(frames, faults, tmp_path / "run", begins=number == 0)
        assert (len(replies) == 4) == (faults != [cut])
        written = (tmp_path / "run" / "nonces").read_bytes()
        found += [written[n : n + 12] for n in range(0, len(written), 12)]
    plain = made.writes + made.fed
    assert len(found) >= 4 * 3 * plain  # more than frames alone have
    assert len(set(found)) == len(found)
    assert {int.from_bytes(nonce[4:8], "little") for nonce in found} == {1, 2, 3, 4}
