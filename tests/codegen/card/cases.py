"""Faults of a card, what they may end in, and what they did."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pipeline.graph.tensor import IntArray
from pipeline.targets.protocol import Reply, Status
from tests.codegen.card.faulty import Fault, Faulty
from tests.codegen.card.sealing import Program

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
