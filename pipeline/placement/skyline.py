"""Is there a packing within a limit? An exact search over skylines.

In some smallest packing every block lies on the ground or on another one (push them all down), so
it is found by filling the arena from below: at the lowest place of the skyline, either put a block
that fits there, or decide that none starts at this height (E. K. Burke et al., A new placement
heuristic for the orthogonal stock-cutting problem, 2004, made exhaustive). A step where as much
lives as the limit allows cannot waste a cell, which prunes most.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.placement.blocks import Profiles, round_up


class _Node(NamedTuple):
    """The height of every step and the cells that it may still waste; as masks, the steps where
    nothing more starts at the lowest height, and the blocks that are left; what is placed."""

    heights: tuple[int, ...]
    slack: tuple[int, ...]
    closed: int
    left: int
    placed: tuple[tuple[int, int], ...]


def fill(of: Profiles, limit: int, nodes: int) -> tuple[tuple[int, ...] | None, int, bool]:
    """Addresses of profiles of one part within ``limit`` cells or None, the nodes looked at, and
    whether the answer is certain: ``nodes`` sufficed."""
    sizes, aligns = of.size.tolist(), of.align.tolist()
    crowds = _crowds(list(zip(of.first.tolist(), of.last.tolist(), strict=True)))
    over = [sum(1 << at for at, crowd in enumerate(crowds) if crowd >> n & 1)
            for n in range(len(of))]  # fmt: skip
    spans = [[at for at in range(len(crowds)) if mask >> at & 1] for mask in over]
    by_size = sorted(range(len(of)), key=lambda n: sizes[n] * len(spans[n]))
    here = [[n for n in by_size if at in spans[n]] for at in range(len(crowds))]
    slack = tuple(limit - sum(sizes[n] for n in each) for each in here)
    if min(slack) < 0:
        return None, 0, True
    stack = [_Node((0,) * len(crowds), slack, 0, (1 << len(of)) - 1, ())]
    seen: set[tuple[tuple[int, ...], int, int]] = set()
    for used in range(nodes):
        if not stack:
            return None, used, True
        node = stack.pop()
        if not node.left:
            addresses = dict(node.placed)
            return tuple(addresses[n] for n in range(len(of))), used, True
        key = node.heights, node.closed, node.left
        if key in seen:
            continue
        seen.add(key)
        unfinished = [at for at, crowd in enumerate(crowds) if crowd & node.left]
        low = min(node.heights[at] for at in unfinished)
        ground = [at for at in unfinished if node.heights[at] == low]
        free = [at for at in ground if not node.closed >> at & 1]
        if not free:  # nothing more starts at the lowest height: go on at the next one
            higher = [node.heights[at] for at in unfinished if node.heights[at] > low]
            if higher and (lifted := _raised(node, ground, min(higher), 0)):
                stack.append(lifted._replace(closed=0))
            continue
        at = min(free, key=lambda at: (node.slack[at], at))
        if node.slack[at] > 0:
            stack.append(node._replace(closed=node.closed | 1 << at))
        blocked = node.closed | sum(1 << s for s in unfinished if node.heights[s] > low)
        for n in here[at]:
            base, size = round_up(low, aligns[n]), sizes[n]
            fits = node.left >> n & 1 and not over[n] & blocked and base + size <= limit
            if fits and (put := _raised(node, spans[n], base, size)):
                placed = (*node.placed, (n, base))
                stack.append(put._replace(left=node.left & ~(1 << n), placed=placed))
    return None, nodes, False


def _crowds(lives: Sequence[tuple[int, int]]) -> list[int]:
    """The sets of blocks that live together, as masks, without those that are part of another."""
    sets = {
        sum(1 << n for n, (first, last) in enumerate(lives) if first <= at <= last)
        for at in {first for first, _ in lives}
    }
    largest = [a for a in sets if not any(a != b and a & b == a for b in sets)]
    return sorted(largest, key=lambda crowd: min(
        last for n, (_, last) in enumerate(lives) if crowd >> n & 1))  # fmt: skip


def _raised(node: _Node, steps: list[int], base: int, size: int) -> _Node | None:
    """A block of ``size`` at ``base`` through ``steps``; None where that wastes too much below."""
    heights, slack = list(node.heights), list(node.slack)
    for at in steps:
        slack[at] -= base - heights[at]
        heights[at] = base + size
        if slack[at] < 0:
            return None
    return node._replace(heights=tuple(heights), slack=tuple(slack))
