"""``python -m tests.codegen.card.campaign [FAULTS [CUTS]]``: a card that lies, 10,000 times.

A sealed network on a simulated Cortex-M7; each inference has one fault of a recorded seed. A fault
is repaired where the answer is right; one that cannot be, such as weights that are not on the card
any more, has to end with its own status. An answer that is wrong ends the campaign with 1. Then the
power is cut in the middle of a command, and the next start has to answer right.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.sealing import Security
from pipeline.targets.protocol import Reply, Status
from tests.codegen.card.faulty import MOST_BLOCKS, Fault, Faulty, Kind, faulty
from tests.codegen.card.sealing import BLOCK, given

FAULTS, CUTS, BATCH, SEED = 10_000, 500, 250, 25
LEVELS: tuple[Security, ...] = ("integrity", "encrypted")

REPAIRED = "repaired"
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
    "a tile of an older image",
)


@dataclass(frozen=True)
class Case:
    """``expected``: the statuses that it may end with."""

    name: str
    fault: Fault
    expected: frozenset[Status]


def drawn(made: Faulty, rng: np.random.Generator) -> Case:
    """Any fault, at any command."""

    def pick(count: int) -> int:
        return int(rng.integers(count))

    read, write, many = pick(made.reads), pick(made.writes), pick(1 << 30)
    kind = DRAWN[pick(len(DRAWN))]
    right, damaged = frozenset({Status.OK}), frozenset({Status.CARD_DAMAGED})
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
        DRAWN[7]: (Fault(Kind.FLIP_CARD, 0, many, 0, fed), frozenset({Status.INPUT_LOST})),
        DRAWN[8]: (Fault(Kind.EXCHANGED, 0, count, second * BLOCK, first * BLOCK), damaged),
        DRAWN[9]: (Fault(Kind.OLDER, 0, count, first * BLOCK, first * BLOCK), damaged),
    }
    return Case(kind, *found[kind])


def injected(made: Faulty, count: int, seed: int, folder: Path) -> Counter[tuple[str, str]]:
    """How often each kind of fault ended in what; (kind, end)."""
    rng, found = np.random.default_rng(seed), Counter[tuple[str, str]]()
    for low in range(0, count, BATCH):
        cases = [drawn(made, rng) for _ in range(min(BATCH, count - low))]
        frames = given(made.program.graph, len(cases))
        replies = made.replies(frames, [case.fault for case in cases], folder)
        for case, frame, reply in zip(cases, frames, replies, strict=True):
            found[case.name, ended(made, case, frame, reply)] += 1
    return found


def ended(made: Faulty, case: Case, frame: IntArray, reply: Reply) -> str:
    """``repaired`` or the status, after ``wrong:`` where it is not as it has to be."""
    if reply.status == Status.OK:
        return REPAIRED if made.program.right(reply, frame) else "wrong: another answer"
    said = reply.status.name.lower()
    return said if reply.status in case.expected else f"wrong: {said}"


def cut(made: Faulty, count: int, seed: int, folder: Path) -> int:
    """How often the power was cut in the first of two inferences, and the next start, with the card
    and the count of starts as they were left, was not right."""
    rng, failed = np.random.default_rng(seed), 0
    frames = given(made.program.graph, 2)
    for _ in range(count):
        writes = int(rng.integers(2))
        command = int(rng.integers(made.writes if writes else made.reads))
        fault = Fault(Kind.CUT, command, int(rng.integers(1 << 30)), writes)
        made.replies(frames, [fault], folder)
        replies = made.replies(frames, [], folder, begins=False)
        failed += len(replies) != 2 or not all(map(made.program.right, replies, frames))
    return failed


def main(faults: int = FAULTS, cuts: int = CUTS) -> int:
    wrong = 0
    for security in LEVELS:
        with tempfile.TemporaryDirectory(prefix="thimble.") as name:
            folder = Path(name)
            made = faulty(folder / "made", security)
            found = injected(made, faults, SEED, folder / "run")
            print(f"security={security}, {faults:,} faults, seed {SEED}")
            for (kind, end), count in sorted(found.items()):
                print(f"  {kind:45} {end:25} {count:6,}")
                wrong += count * end.startswith("wrong")
            failed = cut(made, cuts, SEED, folder / "run")
            print(f"  {'the power cut: the next start is not right':71} {failed:6,} of {cuts:,}")
            wrong += failed
    print(f"{wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
