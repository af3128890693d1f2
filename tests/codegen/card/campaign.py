"""``python -m tests.codegen.card.campaign [FAULTS [CUTS [FILE [CORE [LEVEL …]]]]]``.

A card that lies beside a network, on a simulated Cortex-M7 (CORE ``m7``), or the same C as a native
program (``native``), in a fraction of the time, or on a simulated Uno (``uno``); each frame has one
fault of a recorded seed (``tries``, ``faulty_avr``). A fault is repaired where the answer is right;
one that cannot be, such as weights that are not on the card any more, has to end with its own
status. Then the power is cut in the middle of a command, and the next start has to answer right.
Exits with 1 after an answer that is wrong, a start that is not right, a status that is not that of
the fault, or where less than 99 % of what can be repaired is. Each command of a frame fails once to
three times, too, and more goes wrong while an input is fed.

What each batch ended in is appended to FILE, beside its seed and the hash of the firmware: a
campaign that is started again goes on after the batches of this firmware that are there.
"""

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

from pipeline.sealing import Security
from tests.codegen.card import faulty_avr, tries
from tests.codegen.card.faulty_avr import FaultyUno, faulty_uno
from tests.codegen.card.support import faulty, given, large
from tests.codegen.card.tries import WRONG, Counts, failed, judged

BATCH, CUTS_BATCH, SEED = 250, 25, 25
EVERY, FED = 2_000, {"uno": 500}
"""Tries of each level, which are fewer, and faults while an input is fed, elsewhere 2,250."""
Batch = dict[str, int | str]
POWER = "the power cut"


def kind_of(made: Any) -> Any:
    """Choose the module that knows the faults of its card."""
    return faulty_avr if isinstance(made, FaultyUno) else tries


def injected(made: Any, count: int, seed: int, folder: Path, draws: str = "drawn") -> Counts:
    """Count what so many faults ended in."""
    rng, kind = np.random.default_rng(seed), kind_of(made)
    cases = [getattr(kind, draws)(made, rng) for _ in range(count)]
    return kind.judged_frames(made, cases, folder, rng)


def fed(made: Any, count: int, seed: int, folder: Path) -> Counts:
    """Count what so many faults while an input is fed ended in."""
    return injected(made, count, seed, folder, "feeding")


def tried(made: Any, count: int, seed: int, folder: Path) -> Counts:
    """Count what ``count`` of all tries ended in, or all of them."""
    rng, kind = np.random.default_rng(seed), kind_of(made)
    every = list(kind.tries(made, folder))
    chosen = [every[n] for n in sorted(rng.permutation(len(every))[:count])]
    return kind.judged_frames(made, chosen, folder, rng)


def cut(made: Any, count: int, seed: int, folder: Path) -> Counts:
    """Count what became of the next start after so many cuts of the power."""
    rng, found = np.random.default_rng(seed), Counts()
    frames = given(made.program.graph, 2)
    for _ in range(count):
        replies = kind_of(made).after_cut(made, frames, rng, folder)
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
    parts: Mapping[Callable[..., Counts], int],
    about: Batch,
    path: Path | None,
    folder: Path,
) -> Counts:
    """All batches of one firmware: so many of each part."""
    record, found = Record(path, hashlib.sha256(made.firmware).hexdigest()[:16]), Counts()
    for part, total in parts.items():
        size = SIZES[part.__name__]
        for number, low in enumerate(range(0, total, size)):
            count, seed = min(size, total - low), SEED + 1000 * number
            batch: Batch = {"what": part.__name__, **about, "count": count, "seed": seed}
            found += record.counts(batch, partial(part, made, count, seed, folder))
    return found


def whole(
    core: str, security: Security, faults: int, cuts: int, path: Path | None, folder: Path
) -> Counts:
    """All batches of one level; those of ``unchecked`` are tries, also where a result is taken."""
    found = Counts()
    (folder / "run").mkdir()
    parts = {injected: faults, cut: cuts, tried: EVERY, fed: FED.get(core, 2_250)}
    names: tuple[str, ...] = (security,)
    if security == "unchecked":
        parts, names = {tried: EVERY}, ("unchecked", "unchecked, taken")
    for name in names:
        if core == "uno":
            taken = large((6, 6, 4), 40) if name != security else None
            made: Any = faulty_uno(folder / name, security, taken)
        else:
            made = faulty(folder / name, security, taken=large() if name != security else None)
            made = made.natively() if core == "native" else made
        about = {"security": name} | ({"core": core} if core != "m7" else {})
        found += batches(made, parts, about, path, folder / "run")
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
    """Try each level: 10,000 faults, and 500 cuts, in all."""
    wrong = False
    others: tuple[Security, ...] = () if core == "uno" else ("integrity", "encrypted")
    for security in levels or ("none", *others, "unchecked"):
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
