"""Is there a packing within a limit? An exact search over skylines.

In some smallest packing every block lies on the ground or on another one (push them all down), so
it is found by filling the arena from below: at the lowest place of the skyline, either put a block
that fits there, or decide that none starts at this height (E. K. Burke et al., A new placement
heuristic for the orthogonal stock-cutting problem, 2004, made exhaustive). A step where as much
lives as the limit allows cannot waste a cell, which prunes most.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.placement.blocks import Profile


class _Node(NamedTuple):
    """The height of every step and the cells that it may still waste; as masks, the steps where
    nothing more starts at the lowest height, and the blocks that are left; what is placed."""

    heights: tuple[int, ...]
    slack: tuple[int, ...]
    closed: int
    left: int
    placed: tuple[tuple[int, int], ...]


def fill(
    blocks: Sequence[Profile], limit: int, nodes: int
) -> tuple[tuple[int, ...] | None, int, bool]:
    """Addresses of ``blocks``, profiles of one part, within ``limit`` cells or None, the nodes
    looked at, and whether the answer is certain: ``nodes`` sufficed."""
    crowds = _crowds(blocks)
    over = [sum(1 << at for at, crowd in enumerate(crowds) if crowd >> n & 1)
            for n in range(len(blocks))]  # fmt: skip
    spans = [[at for at in range(len(crowds)) if mask >> at & 1] for mask in over]
    by_size = sorted(range(len(blocks)), key=lambda n: blocks[n].size * len(spans[n]))
    here = [[n for n in by_size if at in spans[n]] for at in range(len(crowds))]
    slack = tuple(limit - sum(blocks[n].size for n in each) for each in here)
    if min(slack) < 0:
        return None, 0, True
    stack = [_Node((0,) * len(crowds), slack, 0, (1 << len(blocks)) - 1, ())]
    seen: set[tuple[tuple[int, ...], int, int]] = set()
    for used in range(nodes):
        if not stack:
            return None, used, True
        node = stack.pop()
        if not node.left:
            addresses = dict(node.placed)
            return tuple(addresses[n] for n in range(len(blocks))), used, True
        key = node.heights, node.closed, node.left
        if key in seen:
            continue
        seen.add(key)
        unfinished = [at for at, crowd in enumerate(crowds) if crowd & node.left]
        low = min(node.heights[at] for at in unfinished)
        ground = [at for at in unfinished if node.heights[at] == low]
        free = [at for at in ground if not node.closed >> at & 1]
        if not free:
            lifted = _lift(node, unfinished, ground, low)
            stack += [lifted] if lifted else []
            continue
        at = min(free, key=lambda at: (node.slack[at], at))
        if node.slack[at] > 0:
            stack.append(node._replace(closed=node.closed | 1 << at))
        blocked = node.closed | sum(1 << s for s in unfinished if node.heights[s] > low)
        for n in here[at]:
            if node.left >> n & 1 and not over[n] & blocked:
                placed = _put(node, n, blocks[n], spans[n], low, limit)
                stack += [placed] if placed else []
    return None, nodes, False


def _crowds(blocks: Sequence[Profile]) -> list[int]:
    """The sets of blocks that live together, as masks, without those that are part of another."""
    sets = {
        sum(1 << n for n, b in enumerate(blocks) if b.first <= at <= b.last)
        for at in {b.first for b in blocks}
    }
    largest = [a for a in sets if not any(a != b and a & b == a for b in sets)]
    return sorted(largest, key=lambda crowd: min(
        b.last for n, b in enumerate(blocks) if crowd >> n & 1))  # fmt: skip


def _lift(node: _Node, unfinished: list[int], ground: list[int], low: int) -> _Node | None:
    """Nothing more starts at the lowest height: go on at the next one."""
    higher = [node.heights[at] for at in unfinished if node.heights[at] > low]
    if not higher:
        return None
    heights, slack = list(node.heights), list(node.slack)
    for at in ground:
        slack[at] -= min(higher) - low
        heights[at] = min(higher)
        if slack[at] < 0:
            return None
    return node._replace(heights=tuple(heights), slack=tuple(slack), closed=0)


def _put(
    node: _Node, n: int, block: Profile, span: list[int], low: int, limit: int
) -> _Node | None:
    address = -(-low // block.align) * block.align
    heights, slack = list(node.heights), list(node.slack)
    for at in span:
        slack[at] -= address - heights[at]
        heights[at] = address + block.size
        if slack[at] < 0:
            return None
    if address + block.size > limit:
        return None
    placed = (*node.placed, (n, address))
    return _Node(tuple(heights), tuple(slack), node.closed, node.left & ~(1 << n), placed)
