"""Blocks of a draft to place: what it holds, their live intervals, and which may overlap.

Steps are numbered through, those of a loop once; a loop begins and ends with a number of its own.
What is needed within a pass alone lives as in a program without the loop; all else that a loop
touches lives through all of it. Scratch is destroyed by each step that has it: it lives as often.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress
from math import prod
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.graph.tensor import IntArray
from pipeline.hardware import Hardware
from pipeline.placement.blocks import WORD, Block, Profile, Profiles, put_over, round_up
from pipeline.placement.fit import NOWHERE
from pipeline.plan.steps import touched
from pipeline.plan.vocabulary import Blocks, Buffer, Compute, Loop, Step
from pipeline.schedules.draft import Draft, Held

NEVER = 1 << 30
"""The first step of what no step names."""


class LiveInterval(NamedTuple):
    """The numbers of the first and the last step."""

    first: int
    last: int


class LiveIntervals:
    """The live interval of each buffer, or row of one, by its number.

    Attributes:
        first, last: numbers of steps.
        often: the steps that have it, for the number of each buffer of scratch.
    """

    def __init__(self) -> None:
        self.first, self.last = array("i"), array("i")
        self.often = dict[int, list[int]]()

    def __contains__(self, number: int) -> bool:
        return number < len(self.last) and self.last[number] >= 0

    def __getitem__(self, number: int) -> LiveInterval:
        return LiveInterval(self.first[number], self.last[number])

    def add(self, some: Iterable[int], life: LiveInterval) -> None:
        """Say that ``some`` are needed through ``life``."""
        for number in some:
            if (more := number + 1 - len(self.last)) > 0:
                self.first.extend([NEVER] * more)
                self.last.extend([-1] * more)
            self.first[number] = min(self.first[number], life.first)
            self.last[number] = max(self.last[number], life.last)

    def walk(
        self,
        steps: Iterable[Step],
        held: Mapping[str, Held],
        now: int = 0,
        around: Mapping[str, LiveInterval] = MappingProxyType({}),
    ) -> int:
        """Add what each of the ``steps`` after number ``now`` names of what is ``held``; return the
        last one's number."""
        for step in steps:
            now += 1
            if isinstance(step, Loop):
                loop = LiveInterval(now, now + numbers([step]) - 1)
                self.walk(step.body, held, now, {**around, step.var: loop})
                now = loop.last
                continue
            for name in step.scratch if isinstance(step, Compute) else ():
                if held[name].buffer.role == "scratch":
                    self.often.setdefault(held[name].first, []).append(now)
                else:
                    self.add(
                        held[name].numbers, _through(held[name], around) or LiveInterval(now, now)
                    )
            for piece in touched(step):
                if each := held.get(piece.buffer):
                    some, (first, size) = each.numbers, (piece.lo[0], piece.size[0])
                    if each.rows and isinstance(first, int):
                        some = some[max(0, first) : max(0, first + size)]
                    self.add(some, _through(each, around) or LiveInterval(now, now))
        return now


def _through(held: Held, around: Mapping[str, LiveInterval]) -> LiveInterval | None:
    """The outermost of the loops ``around`` a step from pass to pass of which ``held`` lives."""
    loops = list(around)
    inner = loops[loops.index(held.within) + 1 :] if held.within in around else loops
    return around[inner[0]] if inner else None


def numbers(steps: Iterable[Step]) -> int:
    """Count the numbers that ``steps`` have."""
    return sum(numbers(step.body) + 2 if isinstance(step, Loop) else 1 for step in steps)


class ToPlace(NamedTuple):
    """Profiles to place – what begins in one place is one profile –, ``at`` the number of each
    buffer (or row) that of its part, -1 for none, and ``overlaps`` as in ``Interference``."""

    profiles: Profiles
    at: IntArray
    overlaps: NDArray[np.int32]

    def begins(self, addresses: IntArray) -> IntArray:
        """Say where each buffer or row of one begins, given the profiles' addresses."""
        begins = addresses[self.profiles.owner] + self.profiles.offset
        return np.where(self.at < 0, NOWHERE, begins[self.at])

    def addresses(self, begins: IntArray) -> IntArray:
        """The reverse; of profiles of none of those that are known NOWHERE."""
        found, at = np.full(len(self.profiles), NOWHERE), self.at[: len(begins)]
        known = np.flatnonzero((at >= 0) & (begins >= 0))
        parts = at[known]
        found[self.profiles.owner[parts]] = begins[known] - self.profiles.offset[parts]
        return found


def to_place(draft: Draft, body: Iterable[Step], keep_input: bool, but: bool = False) -> ToPlace:
    """``body``: may add to the draft as it goes on; ``but``: without scratch where something may
    overlap."""
    graph, held, lives = draft.graph, draft.held, LiveIntervals()
    end = lives.walk(body, held)
    come = {each.tensor for each in draft.elsewhere.values()}
    for name in set(graph.starts) - come:
        image = next(each for each in held.values() if each.buffer.tensor == name)
        kept = keep_input and name in graph.inputs
        lives.add(image.numbers, LiveInterval(0, end if kept else 0))
    for name in graph.ends:
        lives.add(held[draft.home[name]].numbers, LiveInterval(end, end))
    at = array("i", [-1]) * draft.count
    may = draft.overlaps
    profiles = Profiles(_profiles(draft, lives, not (but and may.offsets), at))
    over, under = (np.array(each) for each in (may.over, may.under))
    dying = np.array(lives.last)[under] == np.array(lives.first)[over]
    times, sizes = np.bincount(over[dying]), array("q", profiles.cells.tolist())
    walls = (
        (at[over], at[under], *wall)
        for over, under, safe in compress(may, dying)
        # two could ask for different orders
        for wall in safe.apart(sizes[at[over]], sizes[at[under]], bool(times[over] == 1))
        or [(0, 0)]
    )
    return ToPlace(profiles, np.array(at), np.fromiter(walls, np.dtype((np.int32, 4))))


def _profiles(
    draft: Draft, lives: LiveIntervals, scratch: bool, at: array[int]
) -> Iterator[Profile]:
    """Yield what is to be placed, with scratch or without, and note the numbers of its parts."""
    above, parts = dict[str, list[tuple[int, Held]]](), 0
    bases = {name: draft.base(name, lives.__contains__) for name in draft.held}
    for name, (base, behind) in bases.items():  # its own, if nothing needs what is there
        if base != name and draft.held[name].first in lives:
            above.setdefault(base, []).append((behind, draft.held[name]))
    for members in above.values():
        members.sort(key=lambda each: lives[each[1].first])
    for name, each in draft.held.items():
        size, align = _to_place(each, draft.hardware)
        together = [n for n in each.numbers if n in lives] * (bases[name][0] == name)
        if each.buffer.role == "scratch" and scratch:
            at[each.first] = parts
            profile = Profile(tuple(Block(size, n, n) for n in lives.often[each.first]), align)
            parts += len(profile.parts)
            yield profile
        apart = each.rows and not each.in_one_piece
        for some in ([n] for n in together) if apart else [together] * bool(together):
            for part, number in enumerate(some, parts):
                at[number] = part
            step = to_next_row(each.buffer, draft.hardware) if each.in_one_piece else 0
            placed = [(step * (n - each.first), Block(size, *lives[n])) for n in some]
            for behind, more in above.get(name, ()):
                higher, least = _to_place(more, draft.hardware)
                at[more.first] = parts + put_over(placed, behind, Block(higher, *lives[more.first]))
                align = max(align, least)
            parts += len(placed)
            offsets, blocks = zip(*placed, strict=True)
            yield Profile(blocks, align, offsets if any(offsets) else ())


def _to_place(held: Held, hardware: Hardware) -> tuple[int, int]:
    """Nibbles of all of it, or of a row, with what is lost to alignment, and that."""
    size, align = cells_of(held), alignment(held.buffer, hardware)
    return size if held.in_one_piece else round_up(size, align), align


def cells_of(held: Held) -> int:
    """Return the nibbles of all of it, or of one row, its elements side by side."""
    buffer = held.buffer
    if held.rows:
        return buffer.nibbles * prod(buffer.shape[1:])
    low, high = buffer.map.extent(buffer.shape, buffer.nibbles)
    return high - low


def to_next_row(buffer: Buffer, hardware: Hardware) -> int:
    """Return the nibbles from one row to the next; rows in blocks are aligned for kernels."""
    size = buffer.nibbles * prod(buffer.shape[1:])
    blocks = isinstance(buffer.map, Blocks)
    return round_up(size, alignment(buffer, hardware)) if blocks else size


def alignment(buffer: Buffer, hardware: Hardware) -> int:
    """Nibbles: the board's, and a multiple of an element; scratch begins at words."""
    least = WORD if buffer.role == "scratch" else buffer.bits // 4
    return max(2 * hardware.alignment_bytes, least)
