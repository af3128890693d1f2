"""Find branches whose arms meet again soon, having done nothing but compute in registers.

Such a branch may depend on data: whichever way it goes, no address changes, and what the longest
way takes bounds all. What any of the arms writes depends, where they meet, on all that they read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipeline.machine.decode import ALL, ALWAYS, GE, PC, READS_C, Row

FARTHEST = 64
"""Instructions from a branch to where its arms meet."""
FLAGS = 1 << 16
"""Beside the bits of registers."""


@dataclass(frozen=True)
class Arms:
    """
    Attributes:
        join: the address at which all arms meet.
        longest: instructions of the longest way there, without the branch.
        reads: a set of registers and ``FLAGS``, by bits: what any arm takes from before.
        writes: those that any writes.
    """

    join: int = 0
    longest: int = 0
    reads: int = 0
    writes: int = 0


def arms(table: Mapping[int, Row], branch: Row) -> Arms:
    """Find those of ``branch``; of one whose arms do not meet, or do more, ``Arms()``."""
    ways = _after(branch)
    if len(ways) < 2:
        return Arms()
    for join in (branch.target, *_straight(table, ways[0])):
        found = dict[int, Arms | None]()
        every = [_to(table, way, join, found) for way in ways]
        if all(every):
            return _either(join, 0, [each for each in every if each])
    return Arms()


def _straight(table: Mapping[int, Row], at: int) -> Iterator[int]:
    """Yield places on one way from ``at`` on."""
    for _ in range(FARTHEST):
        yield at
        if not (after := _after(table.get(at))):
            return
        at = after[-1]


def _after(row: Row | None) -> tuple[int, ...]:
    """Say where one goes on from ``row``; nowhere if it does more than compute in registers."""
    if row is None or row.kind not in "DBL" or (row.kind == "L" and row.addresses != 1 << PC):
        return ()
    if row.sets == GE or row.flags & GE:
        return ()
    if row.kind != "B":
        return (row.at + row.size,) if PC not in row.listed else ()
    if not row.target or row.writes:
        return ()
    always = row.condition == ALWAYS and not row.sources
    return (row.target,) if always else (row.at + row.size, row.target)


def _to(table: Mapping[int, Row], at: int, join: int, found: dict[int, Arms | None]) -> Arms | None:
    """Find all ways from ``at`` to ``join``; None if one is a loop or does not come there."""
    if at == join:
        return Arms(join)
    if at not in found:
        found[at] = None  # whoever comes here again meanwhile is in a loop
        row = table.get(at)
        every = [_to(table, way, join, found) for way in _after(row)]
        if row and every and all(every) and len(found) <= FARTHEST:
            ways = _either(join, 1, [each for each in every if each])
            own = sum(1 << number for number, _ in row.sources)
            own |= FLAGS if row.condition < ALWAYS or row.flags & READS_C else 0
            made = row.writes | sum(1 << number for number in row.listed)
            new = made | (FLAGS if row.sets == ALL else 0)
            reads = own | ways.reads & ~(new if row.condition == ALWAYS else 0)
            found[at] = Arms(join, ways.longest, reads, ways.writes | made)
    return found[at]


def _either(join: int, more: int, ways: list[Arms]) -> Arms:
    reads = writes = 0
    for way in ways:
        reads, writes = reads | way.reads, writes | way.writes
    return Arms(join, more + max(way.longest for way in ways), reads, writes)
