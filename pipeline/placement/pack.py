"""Addresses for blocks that live for a while: the smallest arena (dynamic storage allocation).

First fit in several orders; then again and again with the blocks that did not fit under the bound
served earlier (squeaky wheel optimization: Joslin & Clements 1999); where all that misses the
bound, an exact search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.placement.blocks import Block, load
from pipeline.placement.skyline import fill

Rank = Callable[[Block], tuple[int, ...]]

RANKS: tuple[Rank, ...] = (
    lambda b: (-b.size, b.first),
    lambda b: (b.first, -b.size),
    lambda b: (b.first - b.last, -b.size),
    lambda b: ((b.first - b.last - 1) * b.size, b.first),
    lambda b: (-b.last, -b.size),
)


@dataclass(frozen=True)
class Packing:
    """Address of every block; the arena is ``cells`` large, and none is smaller if ``proved``.
    Finding it took ``effort`` steps of about a microsecond."""

    addresses: tuple[int, ...]
    cells: int
    proved: bool
    effort: int = 0


def pack(blocks: Sequence[Block], effort: int) -> Packing:
    """The smallest arena that is found with about ``effort``: a quick look at the bound, then many
    first fits, then all that is left."""
    bound, node = load(blocks), 5 * len(blocks)
    best = _fitted(blocks, bound, 0)
    if best.proved:
        return best
    found, nodes, certain = fill(blocks, bound, max(1, effort // 10 // node))
    if found is not None:
        return Packing(found, bound, True, best.effort + node * nodes)
    spent = best.effort + node * nodes
    if not certain:
        fitted = _fitted(blocks, bound, effort // 3)
        spent += fitted.effort
        best = min(best, fitted, key=lambda packing: packing.cells)
    limit = best.cells - 1 if certain else bound
    while best.cells > bound and limit < best.cells:
        found, nodes, certain = fill(blocks, limit, max(1, (effort - spent) // node))
        spent += node * nodes
        if found is not None:
            best = Packing(found, _top(found, blocks), False)
        elif not certain or limit == best.cells - 1:
            break
        limit = best.cells - 1
    proved = best.cells == bound or (certain and limit == best.cells - 1)
    return Packing(best.addresses, best.cells, proved, spent)


def _fitted(blocks: Sequence[Block], bound: int, effort: int) -> Packing:
    """The best of one first fit for each rank, and then of as many as ``effort`` allows."""
    best, spent = None, 0
    for number, rank in enumerate(RANKS, 1):
        squeaks = [0] * len(blocks)
        while True:
            served = sorted(range(len(blocks)), key=lambda n: (-squeaks[n], rank(blocks[n])))
            addresses = first_fit(blocks, served)
            cells = _top(addresses, blocks)
            spent += len(blocks) ** 2 // 8
            if best is None or cells < best.cells:
                best = Packing(addresses, cells, cells == bound)
            if best.proved or spent * len(RANKS) > effort * number:
                break
            for n, (address, block) in enumerate(zip(addresses, blocks, strict=True)):
                squeaks[n] += address + block.size > bound
        if best.proved:
            break
    assert best is not None
    return Packing(best.addresses, best.cells, best.proved, spent)


def _top(addresses: Sequence[int], blocks: Sequence[Block]) -> int:
    return max((a + b.size for a, b in zip(addresses, blocks, strict=True)), default=0)


def first_fit(blocks: Sequence[Block], served: Sequence[int]) -> tuple[int, ...]:
    """Each block, in the order ``served``, at the lowest address that is free while it lives."""
    addresses: dict[int, int] = {}
    for n in served:
        block, base = blocks[n], 0
        taken = ((a, a + blocks[m].size) for m, a in addresses.items() if blocks[m].meets(block))
        for low, high in sorted(taken):
            if base + block.size <= low:
                break
            base = max(base, -(-high // block.align) * block.align)
        addresses[n] = base
    return tuple(addresses[n] for n in range(len(blocks)))
