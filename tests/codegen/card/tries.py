"""Ends that faults of a card may have, and had; and the faults of a Cortex-M7's: any fault at any
command, commands that fail once to three times in each function that uses a card, whatever may go
wrong while an input is fed, and cuts of the power."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.targets.protocol import Reply, Status
from tests.codegen.card.support import (
    BLOCK,
    MOST_BLOCKS,
    Fault,
    Faulty,
    Kind,
    Program,
    Ran,
    Way,
    Where,
)

LEAST_REPAIRED = 0.99
"""Least share repaired of what can be."""

Counts = Counter[str]
"""Counts of a fault, ": " and what it ended in."""

REPAIRED, WRONG = "repaired", "wrong answer"
LOST, OTHER = "not repaired", "another status than its own"
CLEAR = "the input in clear"


@dataclass(frozen=True)
class Case:
    """``expected``: the statuses that it may end with; ``before``: faults of the frames before."""

    name: str
    fault: Any
    expected: frozenset[Status]
    before: Sequence[Fault] = ()


def end(program: Program, expected: frozenset[Status], frame: IntArray, reply: Reply) -> str:
    """Say what a fault ended in: repaired, a status that it may end with, or a wrong end."""
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
FIRST = "a command fails in the first nn_init"
"""Case that is a program's, not a frame's."""
LOOKS = Fault(Kind.TRY, EVER, 0, where=Where.CHECK)
"""Nothing fails, but nn_check_card is called."""
WORD = 8
"""Bytes: of 16 that follow each other somewhere, 8 begin where the input has a word."""


def tries(made: Faulty, folder: Path) -> Iterator[Case]:
    """Have each command of a frame that goes well fail in each way."""
    made.replies(images(made.program.graph, 4), [OFF, Fault(Kind.NONE), LOOKS], folder)
    found = made.ran(folder)
    for where in Where:
        frame = {Where.INIT: 1, Where.CHECK: 2}.get(where, 3)
        before = [OFF] if where == Where.INIT else []
        for command, times, way in product(range(counted(found, frame, where)), TIMES, Way):
            if where != Where.INVOKE or way == (command + times) % len(Way):
                fault = Fault(Kind.TRY, command, times, way, where=where)
                title = f"a command fails in nn_{name(where)}"
                yield Case(title, fault, ends(made, fault), before)
    for command, times, way in product(range(counted(found, 0, Where.INIT)), TIMES, Way):
        fault = Fault(Kind.TRY, command, times, way, where=Where.INIT)
        yield Case(FIRST, fault, ends(made, fault))


def name(where: Where) -> str:
    return "check_card" if where == Where.CHECK else where.name.lower()


def counted(found: Sequence[Ran], frame: int, where: Where) -> int:
    return sum(ran.frame == frame and ran.where == where for ran in found)


def ends(made: Faulty, fault: Fault) -> frozenset[Status]:
    """Say what may come of it: the card is asked three times, an inference begins anew."""
    once = made.security == "unchecked"
    if not once and (fault.count < len(TIMES) or fault.where == Where.INVOKE):
        return frozenset({Status.OK})
    return frozenset({Status.CARD_FAILED, Status.NO_CARD})


def judged_frames(
    made: Faulty, cases: Sequence[Case], folder: Path, rng: np.random.Generator
) -> Counts:
    """Count what became of ``cases``; a frame is fed after all of them."""
    found, others = Counts(), [case for case in cases if case.name != FIRST]
    for group in [*([case] for case in cases if case.name == FIRST), others]:
        faults = [fault for case in group for fault in (*case.before, case.fault)]
        frames, at = images(made.program.graph, len(faults) + 1, rng), 0
        replies = made.replies(frames, faults, folder)
        for case in group:
            at += len(case.before)
            said = end(made.program, case.expected, frames[at], replies[at])
            found[f"{case.name}: {said}"] += 1
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
    """Check whether any 16 bytes in a row of a frame are in what was written."""
    flat = frames.astype(np.int8).reshape(len(frames), -1)
    words = np.ascontiguousarray(flat[:, : flat.shape[1] // WORD * WORD]).view(np.uint64)
    sorted_words = np.unique(words)
    for shift in range(WORD):
        there = np.frombuffer(written[shift : shift + (len(written) - shift) // WORD * WORD], "<u8")
        if np.isin(there, sorted_words).any():
            return True
    return False


def feeding(made: Faulty, rng: np.random.Generator) -> Case:
    """Draw any fault while an input is fed."""

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


DRAWN, KEYED = 16, 2
"""Kinds of faults, and how many of them take a key: without one there is no difference."""


def drawn(made: Faulty, rng: np.random.Generator) -> Case:
    """Draw any fault, at any command."""

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


def after_cut(
    made: Faulty, frames: IntArray, rng: np.random.Generator, folder: Path
) -> list[Reply]:
    """Run the next start, with the card and the count of starts as they were left, where the power
    was cut in any command from the start to the end of two inferences."""
    writes = int(rng.integers(2))
    command = int(rng.integers(made.commands(bool(writes), len(frames))))
    fault = Fault(Kind.CUT, command, int(rng.integers(1 << 30)), writes)
    if len(made.replies(frames, [fault], folder)) == len(frames):
        raise AssertionError(f"no power was cut in command {command}, writes {writes}")
    return made.replies(frames, [], folder, begins=False)
