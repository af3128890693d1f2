"""``python -m tests.codegen.card.campaign [FAULTS [CUTS [FILE [CORE [LEVEL …]]]]]``.

A card that lies beside a sealed network, on a simulated Cortex-M7 (CORE ``m7``), or the same C as a
native program (``native``), in a fraction of the time; each frame has one fault of a recorded seed.
A fault is repaired where the answer is right; one that cannot be, such as weights that are not on
the card any more, has to end with its own status. Then the power is cut in the middle of a command,
and the next start has to answer right. Exits with 1 after an answer that is wrong, a start that is
not right, a status that is not that of the fault, or where less than 99 % of what can be repaired
is. Each command of a frame fails once to three times, too, and more goes wrong while an input is
fed (``tests.codegen.card.tries``).

What each batch ended in is appended to FILE, beside its seed and the hash of the firmware: a
campaign that is started again goes on after the batches of this firmware that are there.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.sealing import Security
from pipeline.targets.protocol import Status
from tests.codegen.card.faulty import MOST_BLOCKS, Fault, Faulty, Kind, faulty
from tests.codegen.card.support import BLOCK, given, large
from tests.codegen.card.tries import WRONG, Case, Counts, ended, failed, fed, judged, tried

BATCH, CUTS_BATCH, SEED = 250, 25, 25
EVERY, FED = 2_000, 2_250
"""Of each level: tries, which are fewer, and faults while an input is fed."""
Batch = dict[str, int | str]
POWER = "the power cut"
DRAWN, KEYED = 16, 2
"""Kinds of faults, and how many of them take a key: without one there is no difference."""


def drawn(made: Faulty, rng: np.random.Generator) -> Case:
    """Any fault, at any command."""

    def pick(count: int) -> int:
        return int(rng.integers(count))

    read, write, many = pick(made.reads), pick(made.writes), pick(1 << 30)
    number = pick(DRAWN - KEYED * (not made.keyed))
    other, ever, ok = Kind.OTHER_CARD, 1 << 20, Status.OK
    (first, blocks), (second, _) = (made.weights[pick(len(made.weights))] for _ in range(2))
    while second == first:
        second, _ = made.weights[pick(len(made.weights))]
    count, tile = min(blocks, MOST_BLOCKS), first * BLOCK
    inside = tile + pick(16 + 1)  # of its tag, or its first byte
    fed = made.input[pick(len(made.input))][0] * BLOCK + pick(17)
    exchanged = Fault(Kind.EXCHANGED, 0, count, second * BLOCK, tile)
    found = (
        ("a bit of what is read", Fault(Kind.FLIP_READ, read, many), ok),
        ("a bit of what is written", Fault(Kind.FLIP_WRITE, write, many), ok),
        ("a lost write: the tile of an earlier frame", Fault(Kind.LOST_WRITE, write), ok),
        ("a short read", Fault(Kind.SHORT_READ, read, many), ok),
        ("a command fails, or is busy for too long", Fault(Kind.FAIL, read, 1 + pick(4)), ok),
        ("the card is removed and put back", Fault(Kind.GONE, read, 1 + pick(3)), ok),
        ("a bit of the weights", Fault(Kind.FLIP_CARD, 0, many, 0, inside), Status.CARD_DAMAGED),
        ("a bit of the input", Fault(Kind.FLIP_CARD, 0, many, 0, fed), Status.INPUT_LOST),
        ("a tile of weights exchanged", exchanged, Status.CARD_DAMAGED),
        ("another network's card", Fault(other, read, 0, 0), Status.OTHER_CARD),
        ("an older card of this network", Fault(other, read, 0, 1), Status.INPUT_LOST),
        ("every command fails from one on", Fault(Kind.FAIL, read, ever), Status.CARD_FAILED),
        ("the card is removed", Fault(Kind.GONE, read, ever), Status.NO_CARD),
        ("the card cannot be written", Fault(Kind.READ_ONLY, write), Status.CARD_FAILED),
        ("a tile of an older image", Fault(Kind.OLDER, 0, count, tile, tile), Status.CARD_DAMAGED),
        ("another chip's card", Fault(other, read, 0, 2), Status.OTHER_KEY),
    )
    name, fault, status = found[number]
    return Case(name, fault, frozenset({status}))


def injected(made: Faulty, count: int, seed: int, folder: Path) -> Counts:
    """What so many faults ended in."""
    rng, found = np.random.default_rng(seed), Counts()
    cases = [drawn(made, rng) for _ in range(count)]
    frames = given(made.program.graph, count)
    replies = made.replies(frames, [case.fault for case in cases], folder)
    for case, frame, reply in zip(cases, frames, replies, strict=True):
        found[f"{case.name}: {ended(made, case, frame, reply)}"] += 1
    return found


def cut(made: Faulty, count: int, seed: int, folder: Path) -> Counts:
    """What became of the next start, with the card and the count of starts as they were left, where
    the power was cut in any command from the start to the end of two inferences."""
    rng, found = np.random.default_rng(seed), Counts()
    frames = given(made.program.graph, 2)
    for _ in range(count):
        writes = int(rng.integers(2))
        command = int(rng.integers(made.commands(bool(writes), len(frames))))
        fault = Fault(Kind.CUT, command, int(rng.integers(1 << 30)), writes)
        if len(made.replies(frames, [fault], folder)) == len(frames):
            raise AssertionError(f"no power was cut in command {command}, writes {writes}")
        replies = made.replies(frames, [], folder, begins=False)
        right = len(replies) == 2 and all(map(made.program.right, replies, frames))
        found[f"{POWER}: {'the next start is right' if right else WRONG}"] += 1
    return found


@dataclass(frozen=True)
class Record:
    """Batches of a firmware that are done, a line of JSON each; without a path in no file."""

    path: Path | None
    firmware: str

    def counts(self, batch: Batch, count: Callable[[], Counts]) -> Counts:
        """As the file says, or of ``count``, which the file then says."""
        batch = {**batch, "firmware": self.firmware}
        for line in self.lines():
            if line == {**batch, "ended": line["ended"]}:
                return Counts(line["ended"])
        found = count()
        if self.path:
            with self.path.open("a") as file:
                file.write("\n" + json.dumps({**batch, "ended": found}))
        return found

    def lines(self) -> Iterator[dict[str, Any]]:
        """One that was interrupted is none."""
        for line in self.path.read_text().splitlines() if self.path and self.path.exists() else ():
            if line.endswith("}}"):
                yield json.loads(line)


SIZES = {"injected": BATCH, "cut": CUTS_BATCH, "tried": EVERY, "fed": BATCH}


def batches(
    made: Any,
    firmware: bytes,
    parts: Mapping[Callable[..., Counts], int],
    key: Callable[[str], Batch],
    path: Path | None,
    folder: Path,
) -> Counts:
    """All batches of one firmware: so many of each part."""
    record, found = Record(path, hashlib.sha256(firmware).hexdigest()[:16]), Counts()
    for part, total in parts.items():
        size = SIZES[part.__name__]
        for number, low in enumerate(range(0, total, size)):
            count, seed = min(size, total - low), SEED + 1000 * number
            about: Batch = {**key(part.__name__), "count": count, "seed": seed}
            found += record.counts(about, partial(part, made, count, seed, folder))
    return found


def whole(
    core: str, security: Security, faults: int, cuts: int, path: Path | None, folder: Path
) -> Counts:
    """All batches of one level; those of ``unchecked`` are tries alone, also of a network whose
    result is taken."""
    parts = {injected: faults, cut: cuts, tried: EVERY, fed: FED}
    kinds: dict[str, Graph | None] = {security: None}
    if security == "unchecked":
        parts, kinds = {tried: EVERY}, {**kinds, "unchecked, taken": large()}
    found = Counts()
    for what, taken in kinds.items():
        made = faulty(folder / what, security, taken=taken)
        made = made.natively() if core == "native" else made
        about = {"security": what} | ({"core": core} if core != "m7" else {})
        key = partial(lambda part, about: {"what": part, **about}, about=about)
        found += batches(made, made.firmware, parts, key, path, folder / "run")
    return found


def shown(title: str, found: Counts) -> None:
    print(title)
    for end, count in sorted(found.items()):
        print(f"  {end:75} {count:6,}")
    can, repaired, wrong = judged(found)
    print(f"  {repaired:,} of {can:,} repaired; {wrong} wrong", flush=True)


def main(
    faults: str = "3500", cuts: str = "175", path: str = "", core: str = "m7", *levels: Security
) -> int:
    """Of each level: 10,000 faults, and 500 cuts, of all."""
    wrong = False
    for security in levels or ("none", "integrity", "encrypted", "unchecked"):
        with tempfile.TemporaryDirectory(prefix="thimble.") as name:
            file = Path(path) if path else None
            found = whole(core, security, int(faults), int(cuts), file, Path(name))
        what = f"{faults} faults, {cuts} cuts of power"
        what = "commands that fail" if security == "unchecked" else what
        shown(f"{core}, security={security}: {what}", found)
        wrong |= failed(found)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
