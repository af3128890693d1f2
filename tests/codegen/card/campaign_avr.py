"""``python -m tests.codegen.card.campaign_avr [FAULTS [CUTS [FILE]]]``: the campaign on an Uno.

Each fault has a simulated chip of its own, which is given two frames: the fault comes in the second
one. Otherwise as ``tests.codegen.card.campaign``.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from pipeline.targets.protocol import Status
from tests.codegen.card.campaign import BATCH, CUTS_BATCH, POWER, SEED, Batch, Record, shown
from tests.codegen.card.cases import LOST, OTHER, REPAIRED, WRONG, Counts, failed
from tests.codegen.card.faulty_avr import Fault, FaultyUno, Kind, blocks, faulty_uno
from tests.codegen.card.sealing import given

FAULTS, CUTS = 1000, 50
ON_LINE = {1: "a byte", 2: "a check", 3: "a short block", 4: "an error", 5: "nothing comes",
           6: "a refused write", 7: "busy for ever", 8: "a failed write"}  # fmt: skip
"""The model's own faults (firmware/simulators/sd_card.h)."""
NOT_REACHED = "not reached"
SHORT, LONG = range(1, 400), 1 << 30
"""Bytes of the line for which a card is away: those that are waited for, and more than all."""
OTHERS = frozenset({Status.OTHER_CARD, Status.NO_CARD})
"""Another card, or none yet."""


def drawn(made: FaultyUno, rng: np.random.Generator) -> tuple[str, Fault, frozenset[Status]]:
    """Any fault, with the statuses that it may end with."""

    def pick(numbers: range) -> int:
        return int(rng.integers(numbers.start, numbers.stop))

    after, many = pick(range(made.begins + 1, made.ends)), pick(range(1 << 30))
    made_maps = [n for n in made.maps if n not in made.input]
    first, second = rng.choice(np.array(made.weights), 2, replace=False)
    begins = made.begins
    line = pick(range(1, 9))
    found = (
        ("a bit of what is read", Fault(Kind.FLIP_READ, after, many), Status.OK),
        ("a short read", Fault(Kind.SHORT_READ, after, many), Status.OK),
        (f"on the line: {ON_LINE[line]}", Fault(Kind.ON_LINE, after, 1, line), Status.OK),
        ("a bit of what is written", Fault(Kind.FLIP_WRITE, after, many), Status.OK),
        ("a lost write", Fault(Kind.LOST_WRITE, after), Status.OK),
        (
            "a bit of a feature map",
            Fault(Kind.FLIP_CARD, after, many, made_maps[many % len(made_maps)]),
            Status.OK,
        ),
        ("a bit of the weights", Fault(Kind.FLIP_CARD, begins, many, first), Status.CARD_DAMAGED),
        (
            "blocks of weights exchanged",
            Fault(Kind.EXCHANGED, begins, 0, first, second),
            Status.CARD_DAMAGED,
        ),
        (
            "a bit of the input",
            Fault(Kind.FLIP_CARD, begins, many, pick(made.input)),
            Status.INPUT_LOST,
        ),
        ("the card is removed and put back", Fault(Kind.GONE, after, pick(SHORT)), Status.OK),
        ("the card is removed", Fault(Kind.GONE, after, LONG), Status.NO_CARD),
        ("another network's card", Fault(Kind.OTHER_CARD, after, pick(SHORT)), OTHERS),
    )
    name, fault, expected = found[pick(range(len(found)))]
    return name, fault, expected if isinstance(expected, frozenset) else frozenset({expected})


def injected(made: FaultyUno, count: int, seed: int, folder: Path) -> Counts:
    """What so many faults ended in."""
    rng, found = np.random.default_rng(seed), Counts()
    for _ in range(count):
        name, fault, expected = drawn(made, rng)
        frames = given(made.program.graph, 2)
        (first, reply), told = made.replies(frames, fault, folder)
        assert made.program.right(first, frames[0])
        if told.block in made.input and fault.kind in (Kind.FLIP_WRITE, Kind.LOST_WRITE):
            expected = frozenset({Status.INPUT_LOST})
        if reply.status == Status.OK:
            right = made.program.right(reply, frames[1])
            end = WRONG if not right else REPAIRED if told.came else NOT_REACHED
        elif reply.status in expected:
            end = reply.status.name.lower()
        else:
            end = f"{LOST if Status.OK in expected else OTHER}, {reply.status.name.lower()}"
        found[f"{name}: {end}"] += 1
    return found


def cut(made: FaultyUno, count: int, seed: int, folder: Path) -> Counts:
    """What became of the next start where the power was cut in any block."""
    rng, found = np.random.default_rng(seed), Counts()
    frames = given(made.program.graph, 2)
    for _ in range(count):
        fault = Fault(
            Kind.CUT,
            int(rng.integers(made.ends - 8)),
            int(rng.integers(1 << 30)),
            int(rng.integers(2)),
            blocks(made.program),
        )
        replies, told = made.replies(frames, fault, folder)
        assert told.came and len(replies) < 2
        again, _ = made.replies(frames, Fault(Kind.NONE), folder, made.left(folder))
        right = len(again) == 2 and all(map(made.program.right, again, frames))
        found[f"{POWER}: {'the next start is right' if right else WRONG}"] += 1
    return found


def main(faults: int = FAULTS, cuts: int = CUTS, path: Path | None = None) -> int:
    with tempfile.TemporaryDirectory(prefix="thimble.") as name:
        folder, found = Path(name), Counts()
        made = faulty_uno(folder)
        firmware = (made.program.build / "firmware.elf").read_bytes()
        record = Record(path, hashlib.sha256(firmware).hexdigest()[:16])
        for what, batch, total in ((injected, BATCH, faults), (cut, CUTS_BATCH, cuts)):
            for number, low in enumerate(range(0, total, batch)):
                count, seed = min(batch, total - low), SEED + 1000 * number
                key: Batch = {"what": f"{what.__name__} on an Uno", "count": count, "seed": seed}
                found += record.counts(key, partial(what, made, count, seed, folder))
    shown(f"security=none on an Uno: {faults:,} faults, {cuts:,} cuts of power, seed {SEED}", found)
    return int(failed(found))


def asked(faults: str = str(FAULTS), cuts: str = str(CUTS), path: str = "") -> int:
    return main(int(faults), int(cuts), Path(path) if path else None)


if __name__ == "__main__":
    sys.exit(asked(*sys.argv[1:]))
