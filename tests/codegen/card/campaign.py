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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.sealing import Security
from pipeline.targets.protocol import Status
from tests.codegen.card.cases import WRONG, Case, Counts, ended, failed, judged
from tests.codegen.card.faulty import MOST_BLOCKS, Fault, Faulty, Kind, faulty
from tests.codegen.card.sealing import BLOCK, given
from tests.codegen.card.test_large_results import large
from tests.codegen.card.tries import fed, tried

FAULTS, CUTS, BATCH, SEED = 3_500, 175, 250, 25
"""Of each level: 10,000 faults, and 500 cuts, of all."""
CUTS_BATCH = 25
EVERY, FED = 2_000, 2_250
"""Of each level: tries, which are fewer, and faults while an input is fed."""
LEVELS: tuple[Security, ...] = ("none", "integrity", "encrypted", "unchecked")
Batch = dict[str, int | str]
POWER = "the power cut"
DRAWN = (
    "a bit of what is read",
    "a bit of what is written",
    "a lost write: the tile of an earlier frame",
    "a short read",
    "a command fails, or is busy for too long",
    "the card is removed and put back",
    "a bit of the weights",
    "a bit of the input",
    "a tile of weights exchanged",
    "another network's card",
    "an older card of this network",
    "every command fails from one on",
    "the card is removed",
    "the card cannot be written",
    "a tile of an older image",
    "another chip's card",
)
KEYED = 2
"""The last of them take a key: without one there is no difference."""


def kinds(made: Faulty) -> tuple[str, ...]:
    return DRAWN if made.keyed else DRAWN[:-KEYED]


def drawn(made: Faulty, rng: np.random.Generator) -> Case:
    """Any fault, at any command."""

    def pick(count: int) -> int:
        return int(rng.integers(count))

    read, write, many = pick(made.reads), pick(made.writes), pick(1 << 30)
    kind = kinds(made)[pick(len(kinds(made)))]
    right, damaged = frozenset({Status.OK}), frozenset({Status.CARD_DAMAGED})
    failed, lost = frozenset({Status.CARD_FAILED}), frozenset({Status.INPUT_LOST})
    other, ever = Kind.OTHER_CARD, 1 << 20
    (first, blocks), (second, _) = (made.weights[pick(len(made.weights))] for _ in range(2))
    while second == first:
        second, _ = made.weights[pick(len(made.weights))]
    count = min(blocks, MOST_BLOCKS)
    inside = first * BLOCK + pick(16 + 1)  # of its tag, or its first byte
    fed = made.input[pick(len(made.input))][0] * BLOCK + pick(17)
    found: dict[str, tuple[Fault, frozenset[Status]]] = {
        DRAWN[0]: (Fault(Kind.FLIP_READ, read, many), right),
        DRAWN[1]: (Fault(Kind.FLIP_WRITE, write, many), right),
        DRAWN[2]: (Fault(Kind.LOST_WRITE, write), right),
        DRAWN[3]: (Fault(Kind.SHORT_READ, read, many), right),
        DRAWN[4]: (Fault(Kind.FAIL, read, 1 + pick(4)), right),
        DRAWN[5]: (Fault(Kind.GONE, read, 1 + pick(3)), right),
        DRAWN[6]: (Fault(Kind.FLIP_CARD, 0, many, 0, inside), damaged),
        DRAWN[7]: (Fault(Kind.FLIP_CARD, 0, many, 0, fed), lost),
        DRAWN[8]: (Fault(Kind.EXCHANGED, 0, count, second * BLOCK, first * BLOCK), damaged),
        DRAWN[9]: (Fault(other, read, 0, 0), frozenset({Status.OTHER_CARD})),
        DRAWN[10]: (Fault(other, read, 0, 1), lost),
        DRAWN[11]: (Fault(Kind.FAIL, read, ever), failed),
        DRAWN[12]: (Fault(Kind.GONE, read, ever), frozenset({Status.NO_CARD})),
        DRAWN[13]: (Fault(Kind.READ_ONLY, write), failed),
        DRAWN[14]: (Fault(Kind.OLDER, 0, count, first * BLOCK, first * BLOCK), damaged),
        DRAWN[15]: (Fault(other, read, 0, 2), frozenset({Status.OTHER_KEY})),
    }
    return Case(kind, *found[kind])


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


def whole(
    core: str, security: Security, faults: int, cuts: int, path: Path | None, folder: Path
) -> Counts:
    """All batches of one level; those of ``unchecked`` are tries alone, also of a network whose
    result is taken."""
    if security != "unchecked":
        made = faulty(folder / "made", security)
        return batches(made, core, security, (faults, cuts, EVERY, FED), path, folder / "run")
    found = Counts()
    for what, taken in ((security, None), ("unchecked, taken", large())):
        made = faulty(folder / what, security, taken=taken)
        found += batches(made, core, what, (0, 0, EVERY, 0), path, folder / "run")
    return found


def batches(
    made: Faulty, core: str, security: str, totals: tuple[int, ...], path: Path | None, run: Path
) -> Counts:
    made, found = made.natively() if core == "native" else made, Counts()
    record = Record(path, hashlib.sha256(made.firmware).hexdigest()[:16])
    whats, sizes = (injected, cut, tried, fed), (BATCH, CUTS_BATCH, EVERY, BATCH)
    for what, batch, total in zip(whats, sizes, totals, strict=True):
        for number, low in enumerate(range(0, total, batch)):
            count, seed = min(batch, total - low), SEED + 1000 * number
            key: Batch = {"what": what.__name__, "security": security, "count": count, "seed": seed}
            key |= {"core": core} if core != "m7" else {}
            found += record.counts(key, partial(what, made, count, seed, run))
    return found


def shown(title: str, found: Counts) -> None:
    print(title)
    for end, count in sorted(found.items()):
        print(f"  {end:75} {count:6,}")
    can, repaired, wrong = judged(found)
    print(f"  {repaired:,} of {can:,} repaired; {wrong} wrong", flush=True)


def main(
    faults: int = FAULTS,
    cuts: int = CUTS,
    path: Path | None = None,
    core: str = "m7",
    levels: Sequence[Security] = LEVELS,
) -> int:
    wrong = False
    for security in levels:
        with tempfile.TemporaryDirectory(prefix="thimble.") as name:
            found = whole(core, security, faults, cuts, path, Path(name))
        what = f"{faults:,} faults, {cuts:,} cuts of power"
        what = "commands that fail" if security == "unchecked" else what
        shown(f"{core}, security={security}: {what}", found)
        wrong |= failed(found)
    return int(wrong)


def asked(
    faults: str = str(FAULTS),
    cuts: str = str(CUTS),
    path: str = "",
    core: str = "m7",
    *levels: Security,
) -> int:
    return main(int(faults), int(cuts), Path(path) if path else None, core, levels or LEVELS)


if __name__ == "__main__":
    sys.exit(asked(*sys.argv[1:]))
