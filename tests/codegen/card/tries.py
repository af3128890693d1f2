"""What faults of a card may end in, and did: commands that fail once to three times in each
function that uses a card, and whatever may go wrong while an input is fed, for the campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.targets.protocol import Reply, Status
from tests.codegen.card.faulty import Fault, Faulty, Kind, Ran, Way, Where
from tests.codegen.card.support import Program

LEAST_REPAIRED = 0.99
"""Of what can be."""

Counts = Counter[str]
"""How often a fault, ": " and what it ended in came."""

REPAIRED, WRONG = "repaired", "wrong answer"
LOST, OTHER = "not repaired", "another status than its own"
CLEAR = "the input in clear"


@dataclass(frozen=True)
class Case:
    """``expected``: the statuses that it may end with."""

    name: str
    fault: Fault
    expected: frozenset[Status]


def ended(made: Faulty, case: Case, frame: IntArray, reply: Reply) -> str:
    return end(made.program, case.expected, frame, reply)


def end(program: Program, expected: frozenset[Status], frame: IntArray, reply: Reply) -> str:
    """What a fault ended in: repaired, a status that it may end with, or what it should not."""
    if reply.status == Status.OK:
        return REPAIRED if program.right(reply, frame) else WRONG
    said = reply.status.name.lower()
    if reply.status in expected:
        return said
    return f"{LOST if Status.OK in expected else OTHER}, {said}"


def judged(found: Counts) -> tuple[int, int, int]:
    """(faults that can be repaired, those that are, ends that should not be)."""

    def count(*ends: str) -> int:
        return sum(n for name, n in found.items() if name.split(": ")[-1].startswith(ends))

    repaired = sum(n for name, n in found.items() if name.endswith(REPAIRED))
    return repaired + count(LOST), repaired, count(WRONG, OTHER, CLEAR)


def failed(found: Counts) -> bool:
    can, repaired, wrong = judged(found)
    return wrong > 0 or repaired < LEAST_REPAIRED * can


TIMES = (1, 2, 3)
EVER = 1 << 20
OFF = Fault(Kind.FAIL, 0, EVER)
"""Its frame fails, and nn_init looks for the card anew."""
LOOKS = Fault(Kind.TRY, EVER, 0, where=Where.CHECK)
"""Nothing fails, but nn_check_card is called."""
WORD = 8
"""Bytes: of 16 that follow each other somewhere, 8 begin where the input has a word."""


def tries(made: Faulty, folder: Path) -> Iterator[tuple[Sequence[Fault], Case]]:
    """Each command of a frame that goes well, failing in each way; with the faults of the frames
    before."""
    made.replies(images(made.program.graph, 4), [OFF, Fault(Kind.NONE), LOOKS], folder)
    found = made.ran(folder)
    for where in Where:
        frame = {Where.INIT: 1, Where.CHECK: 2}.get(where, 3)
        for command, times, way in product(range(counted(found, frame, where)), TIMES, Way):
            if where != Where.INVOKE or way == (command + times) % len(Way):
                fault = Fault(Kind.TRY, command, times, way, where=where)
                case = Case(f"a command fails in nn_{name(where)}", fault, ends(made, fault))
                yield [OFF] if where == Where.INIT else [], case
    for command, times, way in product(range(counted(found, 0, Where.INIT)), TIMES, Way):
        fault = Fault(Kind.TRY, command, times, way, where=Where.INIT)
        yield [], Case("a command fails in the first nn_init", fault, ends(made, fault))


def name(where: Where) -> str:
    return "check_card" if where == Where.CHECK else where.name.lower()


def counted(found: Sequence[Ran], frame: int, where: Where) -> int:
    return sum(ran.frame == frame and ran.where == where for ran in found)


def ends(made: Faulty, fault: Fault) -> frozenset[Status]:
    """What may come of it: the card is asked three times, and an inference begins anew. Without
    checks nothing is tried twice."""
    once = made.security == "unchecked"
    if not once and (fault.count < len(TIMES) or fault.where == Where.INVOKE):
        return frozenset({Status.OK})
    return frozenset({Status.CARD_FAILED, Status.NO_CARD})


def tried(made: Faulty, count: int, seed: int, folder: Path) -> Counts:
    """What ``count`` of all tries ended in, or all of them."""
    every = list(tries(made, folder))
    rng, found = np.random.default_rng(seed), Counts()
    chosen = [every[n] for n in sorted(rng.permutation(len(every))[:count])]
    alone = [case for before, case in chosen if case.name.endswith("first nn_init")]
    others = [each for each in chosen if not each[1].name.endswith("first nn_init")]
    for case in alone:
        found += judged_frames(made, [([], case)], folder, rng)
    return found + judged_frames(made, others, folder, rng)


def judged_frames(
    made: Faulty,
    cases: Sequence[tuple[Sequence[Fault], Case]],
    folder: Path,
    rng: np.random.Generator,
) -> Counts:
    """What became of ``cases``, with the faults before each; a frame is fed after all of them."""
    faults = [fault for before, case in cases for fault in (*before, case.fault)]
    frames = images(made.program.graph, len(faults) + 1, rng)
    replies, found, at = made.replies(frames, faults, folder), Counts(), 0
    for before, case in cases:
        at += len(before)
        found[f"{case.name}: {ended(made, case, frames[at], replies[at])}"] += 1
        at += 1
    assert made.program.right(replies[at], frames[at])
    if made.security == "encrypted" and in_clear(frames, (folder / "written").read_bytes()):
        found[f"what is written: {CLEAR}"] += 1
    return found


def images(graph: Graph, count: int, rng: np.random.Generator | None = None) -> IntArray:
    """Random bytes."""
    shape = graph.tensors[graph.input].shape
    rng = rng or np.random.default_rng(0)
    return rng.integers(-128, 128, (count, *shape)).astype(np.int64)


def in_clear(frames: IntArray, written: bytes) -> bool:
    """Whether any 16 bytes in a row of a frame are in what was written."""
    flat = frames.astype(np.int8).reshape(len(frames), -1)
    words = np.ascontiguousarray(flat[:, : flat.shape[1] // WORD * WORD]).view(np.uint64)
    sorted_words = np.unique(words)
    for shift in range(WORD):
        there = np.frombuffer(written[shift : shift + (len(written) - shift) // WORD * WORD], "<u8")
        if np.isin(there, sorted_words).any():
            return True
    return False


def fed(made: Faulty, count: int, seed: int, folder: Path) -> Counts:
    """What so many faults while an input is fed ended in."""
    rng = np.random.default_rng(seed)
    cases = [([], fault_of_feeding(made, rng)) for _ in range(count)]
    return judged_frames(made, cases, folder, rng)


def fault_of_feeding(made: Faulty, rng: np.random.Generator) -> Case:
    def pick(count: int) -> int:
        return int(rng.integers(count))

    lost, failed = (frozenset({status}) for status in (Status.INPUT_LOST, Status.CARD_FAILED))
    again = Fault(Kind.TRY, pick(made.fed), 1 + pick(len(TIMES)), pick(len(Way)), where=Where.FEED)
    bit = pick((16 + WORD) * 8)  # of the tag, or of what is behind it
    found = (
        ("a command fails", again, ends(made, again)),
        ("a command fails", again, ends(made, again)),
        ("every command fails from one on", replace(again, count=EVER), failed),
        ("the card cannot be written", replace(again, kind=Kind.READ_ONLY), failed),
        ("a bit of what is written", replace(again, kind=Kind.FLIP_WRITE, count=bit), lost),
        ("a lost write", replace(again, kind=Kind.LOST_WRITE), lost),
    )
    title, fault, expected = found[pick(len(found))]
    return Case(f"while feeding, {title}", fault, expected)
