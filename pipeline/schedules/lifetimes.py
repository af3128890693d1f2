"""Blocks of a draft to place: what it holds, their live intervals, and which may overlap.

Steps are numbered through, those of a loop once; a loop begins and ends with a number of its own.
What is needed within a pass alone lives as in a program without the loop; all else that a loop
touches lives through all of it. Scratch is destroyed by each step that has it: it lives as often.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from pipeline.hardware import Hardware
from pipeline.placement.blocks import WORD, Block, Overlap, Place, Profile, round_up
from pipeline.plan.steps import Statement, touched
from pipeline.plan.vocabulary import Blocks, Buffer, Compute, Loop, Step
from pipeline.schedules.draft import Draft, Held, Key


class Life(NamedTuple):
    """The numbers of the first and the last step."""

    first: int
    last: int


def lifetimes(
    steps: Iterable[Step],
    held: Mapping[str, Held],
    resident: Iterable[Key],
    last: Iterable[Key],
) -> dict[Key, Life]:
    """Return the live interval of each held buffer, or row of one, that a step names; of scratch,
    one for each step that has it, by the step's number.

    Args:
        resident: what is there before the first step, number 1.
        last: what is needed to the end.
    """
    found = dict.fromkeys(resident, Life(0, 0))

    def lives(key: Key, life: Life) -> None:
        known = found.get(key, life)
        found[key] = Life(min(known.first, life.first), max(known.last, life.last))

    def walk(steps: Iterable[Step], now: int, around: Mapping[str, Life]) -> int:
        for step in steps:
            now += 1
            if isinstance(step, Loop):
                loop = Life(now, now + numbers([step]) - 1)
                walk(step.body, now, {**around, step.var: loop})
                now = loop.last
                continue
            for key in _keys(step, now, held):
                lives(key, _through(held[key[0]], around) or Life(now, now))
        return now

    end = walk(steps, 0, {})
    for key in last:
        lives(key, Life(end, end))
    return found


def _through(held: Held, around: Mapping[str, Life]) -> Life | None:
    """The outermost of the loops ``around`` a step from pass to pass of which ``held`` lives."""
    loops = list(around)
    inner = loops[loops.index(held.within) + 1 :] if held.within in around else loops
    return around[inner[0]] if inner and held.buffer.role != "scratch" else None


def numbers(steps: Iterable[Step]) -> int:
    """Count the numbers that ``steps`` have."""
    return sum(numbers(step.body) + 2 if isinstance(step, Loop) else 1 for step in steps)


def _keys(step: Statement, now: int, held: Mapping[str, Held]) -> Iterator[Key]:
    """Yield the keys of held buffers and rows that the step touches."""
    if isinstance(step, Compute):
        for name in step.scratch:
            yield name, now if held[name].buffer.role == "scratch" else 0
    for piece in touched(step):
        each = held.get(piece.buffer)
        if each is None:
            continue
        first, size = piece.lo[0], piece.size[0]
        if not each.rows:
            yield piece.buffer, 0
        elif isinstance(first, int):
            yield from each.keys[max(0, first) : max(0, first + size)]
        else:
            yield from each.keys


class ToPlace(NamedTuple):
    """Profiles to place, the profile's number and the part's for each buffer (or row) – what begins
    in one place is one profile –, and which may overlap."""

    profiles: list[Profile]
    at: dict[Key, Place]
    overlaps: list[Overlap]


def to_place(draft: Draft, body: Sequence[Step], keep_input: bool, but: bool = False) -> ToPlace:
    """``but``: without scratch."""
    graph, held = draft.graph, draft.held
    outside = any(each.tensor == graph.input for each in draft.elsewhere.values())
    given = (each.keys for each in held.values() if each.buffer.tensor == graph.input)
    resident = () if outside else next(given)
    last = [*held[draft.home[graph.output]].keys, *(resident if keep_input else ())]
    lives, often = lifetimes(body, held, resident, last), dict[str, list[Life]]()
    for key, life in lives.items():
        if held[key[0]].buffer.role == "scratch":
            often.setdefault(key[0], []).append(life)
    at: dict[Key, Place] = {}
    profiles: list[Profile] = []
    for name, each in held.items():
        align = alignment(each.buffer, draft.hardware)
        keys = [key for key in each.keys if key in lives]
        apart = each.rows and not each.in_one_piece
        size = row_nibbles(each.buffer) if each.rows else nibbles(each.buffer)
        size = size if each.in_one_piece else round_up(size, align)
        if each.buffer.role == "scratch":
            if not but:
                at[name, 0] = len(profiles), 0
                blocks = tuple(Block(size, *life) for life in often[name])
                profiles.append(Profile(blocks, align))
        elif (each.over, 0) in at:  # or nothing needs what it lies over
            for key in keys:
                n, _ = at[key] = at[each.over, 0]
                parts = _over(profiles[n].parts, Block(size, *lives[key]))
                profiles[n] = Profile(parts, max(profiles[n].align, align))
        else:
            step = to_next_row(each.buffer, draft.hardware) if each.in_one_piece else 0
            for some in ([key] for key in keys) if apart else [keys] * bool(keys):
                at |= {key: (len(profiles), n) for n, key in enumerate(some)}
                parts = tuple(Block(size, *lives[key]) for key in some)
                profiles.append(Profile(parts, align, tuple(row * step for _, row in some)))
    dying = [each for each in draft.overlaps if lives[each.under].last == lives[each.over].first]
    times = Counter(each.over for each in dying)
    overlaps = list[Overlap]()
    for over, under, gap in dying:
        above, below = (profiles[n].parts[part].size for n, part in (at[over], at[under]))
        backwards = times[over] == 1  # two could ask for different orders
        walls = gap.apart(above, below, backwards) or ((0, 0),)
        overlaps += (Overlap(at[over], at[under], *wall) for wall in walls)
    return ToPlace(profiles, at, overlaps)


def _over(below: Sequence[Block], block: Block) -> tuple[Block, ...]:
    """Return what lies at one address once ``block`` lies over the last of ``below``."""
    *rest, last = below
    if last.size == block.size:
        return *rest, last._replace(last=max(last.last, block.last))
    turn = last.last + (last.size > block.size)  # both are there at the step that turns one
    more = [block._replace(first=turn)] if turn <= block.last else []
    return *rest, last._replace(last=turn - 1), *more


def row_nibbles(buffer: Buffer) -> int:
    """Return the nibbles of one row, its elements side by side."""
    return buffer.nibbles * prod(buffer.shape[1:])


def to_next_row(buffer: Buffer, hardware: Hardware) -> int:
    """Return the nibbles from one row to the next; rows in blocks are aligned for kernels."""
    size = row_nibbles(buffer)
    blocks = isinstance(buffer.map, Blocks)
    return round_up(size, alignment(buffer, hardware)) if blocks else size


def nibbles(buffer: Buffer) -> int:
    low, high = buffer.map.extent(buffer.shape, buffer.nibbles)
    return high - low


def alignment(buffer: Buffer, hardware: Hardware) -> int:
    """Nibbles: the board's, and a multiple of an element; scratch begins at words."""
    least = WORD if buffer.role == "scratch" else buffer.bits // 4
    return max(2 * hardware.alignment_bytes, least)
