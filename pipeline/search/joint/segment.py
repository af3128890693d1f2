"""A segment: from whole tensors to whole tensors, its rows made when they are asked for.

Depth first and never twice: no row waits in memory for long.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator

from pipeline.search.view.rows import Units
from pipeline.search.view.whole import AT_END


def on_demand(units: Units, begin: int, target: Iterable[str]) -> Iterator[int]:
    """Yield units in their order, from where those before ``begin`` are done to where all rows of
    ``target`` that are needed are."""
    makers, every = units.makers, units.units
    done = bytearray(begin * b"\1").ljust(len(every), b"\0")
    rows = [
        (number / len(units.blocks[name]), block)
        for name in target
        for number, block in enumerate(units.blocks[name], 1)
        if units.needed[block] and makers[block] >= 0
    ]
    for _, asked_for in sorted(rows):  # evenly from each tensor
        stack = [makers[asked_for]]
        while stack:
            if not done[top := stack[-1]]:
                if missing := [each for each in every[top].before if not done[each]]:
                    stack += reversed(missing)
                    continue
                done[top] = 1
                yield top
            stack.pop()


class _Left(dict[int, int]):
    """Counts of reads of a block that a segment's operators still make, looked up on demand."""

    def __init__(self, units: Units, first: int, stop: int, target: Iterable[str]) -> None:
        super().__init__((block, AT_END) for name in target for block in units.blocks[name])
        self.readers, self.ends = units.readers, (first, stop)

    def __missing__(self, block: int) -> int:
        readers, (first, stop) = self.readers[block], self.ends
        self[block] = found = bisect_left(readers, stop) - bisect_left(readers, first)
        return found


def peak(
    units: Units,
    order: Iterable[int],
    span: tuple[int, int],
    source: Collection[str],
    target: Collection[str],
    limit: int,
) -> tuple[int, int]:
    """Cells that live at most, what a row shares with a dying one counted once; some number above
    ``limit`` where that is exceeded: then no more of ``order`` is looked at. And how much was.

    Args:
        span: the first operator of the segment, and the one after its last.
    """
    every, sizes, left = units.units, units.sizes, _Left(units, *span, target)
    here = set(units.held(source))
    most, looked = sum(sizes[block] for block in here), 0
    live = sum(sizes[block] for block in here if left[block])
    for number in order:
        looked += 1
        _, reads, shares, block, _, within = every[number]
        died = saved = 0
        if block not in here:
            here.add(block)
            live += sizes[block]
            if not left[block]:
                died = sizes[block]
        for read, share in zip(reads, shares):  # noqa: B905, as often as there are rows
            left[read] = more = left[read] - 1
            if not more:
                died += sizes[read]
                if share > saved:
                    saved = share
        if live - saved + within > most:
            most = live - saved + within
            if most > limit:
                break
        live -= died
    return most, looked
