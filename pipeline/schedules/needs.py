"""What has to be placed: blocks of what a draft holds, their lives, and which may overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from pipeline.hardware import Hardware
from pipeline.placement.blocks import WORD, Block, Overlap, Place, Profile, round_up
from pipeline.plan.vocabulary import Blocks, Buffer, Step
from pipeline.schedules.draft import Draft, Key
from pipeline.schedules.lifetimes import Life, lifetimes


class Needs(NamedTuple):
    """What has to be placed, for each buffer (or row) the number of its own – what begins in one
    place is one profile –, and which may overlap."""

    profiles: list[Profile]
    number: dict[Key, int]
    overlaps: list[Overlap]


def needs(draft: Draft, body: Sequence[Step], keep_input: bool, but: bool = False) -> Needs:
    """``but``: without scratch."""
    graph, held = draft.graph, draft.held
    given = [each.keys for each in held.values() if each.buffer.tensor == graph.input]
    outside = any(each.tensor == graph.input for each in draft.elsewhere.values())
    resident = [] if outside else list(given[0])
    last = [*held[draft.home[graph.output]].keys, *(resident if keep_input else ())]
    lives = lifetimes(body, held, resident, last)
    at: dict[Key, Place] = {}
    parts: list[list[Block]] = []
    offsets: list[list[int]] = []
    aligns: list[int] = []
    for each in held.values():
        align = alignment(each.buffer, draft.hardware)
        apart = each.rows and not each.in_one_piece
        size = row_nibbles(each.buffer) if each.rows else nibbles(each.buffer)
        if each.buffer.role == "scratch":
            if but:
                continue
            at[each.keys[0]] = len(parts), 0
            parts.append(_often(round_up(size, align), each.buffer.name, lives))
            offsets.append([0] * len(parts[-1]))
            aligns.append(align)
            continue
        needed = [(n, key) for n, key in enumerate(each.keys) if key in lives]
        for number, key in needed:
            if (each.over, 0) in at:  # or nothing needs what it lies over
                n, _ = at[key] = at[each.over, 0]
                parts[n] = _over(parts[n], Block(round_up(size, align), *lives[key]))
                aligns[n] = max(aligns[n], align)
                offsets[n] = [0] * len(parts[n])
                continue
            if apart or number == needed[0][0]:
                parts.append([])
                offsets.append([])
                aligns.append(align)
            at[key] = len(parts) - 1, len(parts[-1])
            room = round_up(size, align) if apart or not each.rows else size
            parts[-1].append(Block(room, *lives[key]))
            step = to_next_row(each.buffer, draft.hardware) if each.in_one_piece else 0
            offsets[-1].append(number * step)
    profiles = [
        Profile(tuple(each), align, tuple(offset))
        for each, align, offset in zip(parts, aligns, offsets, strict=True)
    ]
    dying = [each for each in draft.overlaps if lives[each.under].last == lives[each.over].first]
    times = Counter(each.over for each in dying)
    overlaps = list[Overlap]()
    for over, under, gap in dying:
        above, below = (profiles[n].parts[part].size for n, part in (at[over], at[under]))
        backwards = times[over] == 1  # two could ask for different orders
        walls = gap.apart(above, below, backwards) or ((0, 0),)
        overlaps += (Overlap(at[over], at[under], *wall) for wall in walls)
    return Needs(profiles, {key: n for key, (n, _) in at.items()}, overlaps)


def _often(size: int, name: str, lives: Mapping[Key, Life]) -> list[Block]:
    """Scratch: at each step that has it, one block for those in a row."""
    found: list[Block] = []
    for life in sorted(life for key, life in lives.items() if key[0] == name):
        if found and life.first <= found[-1].last + 1:
            found[-1] = found[-1]._replace(last=life.last)
        else:
            found.append(Block(size, *life))
    return found


def _over(below: list[Block], block: Block) -> list[Block]:
    """What lies at one address with ``block`` over the last of it."""
    *rest, last = below
    if last.size == block.size:
        return [*rest, last._replace(last=max(last.last, block.last))]
    turn = last.last + (last.size > block.size)  # both are there at the step that turns one
    more = [block._replace(first=turn)] if turn <= block.last else []
    return [*rest, last._replace(last=turn - 1), *more]


def row_nibbles(buffer: Buffer) -> int:
    """Of one row, side by side."""
    return buffer.nibbles * prod(buffer.shape[1:])


def to_next_row(buffer: Buffer, hardware: Hardware) -> int:
    """Of rows that follow each other; of those in blocks each begins where kernels like it."""
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
