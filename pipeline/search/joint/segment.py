"""A segment: from whole tensors to whole tensors, its rows made when they are asked for.

Depth first and never twice: no row waits in memory for long. With ``together`` rows of a tensor
asked for at once, fewer kernels are called in turn, and more rows wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pipeline.search.joint.units import Units

WHOLE = 1 << 30
"""Rows together: layer by layer."""


def on_demand(
    units: Units, source: Iterable[str], target: Iterable[str], together: int = 1
) -> list[int]:
    """Units in their order, from all rows of ``source`` to those of ``target`` that are needed."""
    makers, every = units.makers, units.units
    done, waiting = bytearray(len(every)), bytearray(len(every))
    for name in source:
        for block in units.blocks[name]:
            if block in makers:
                done[makers[block]] = 1
    order: list[int] = []
    for first in _asked(units, target):
        stack = [first]
        while stack:
            top = stack[-1]
            if done[top]:
                stack.pop()
                continue
            group = _group(units, top, together)
            if not waiting[top]:
                waiting[top] = 1
                missing = [
                    n for each in group for n in every[each].after if not done[n] and n not in group
                ]
                if missing:
                    stack += reversed(missing)
                    continue
            for each in group:
                if not done[each]:
                    done[each] = 1
                    order.append(each)
    return order


def _asked(units: Units, target: Iterable[str]) -> list[int]:
    """The last units of the rows of ``target``, evenly from each tensor."""
    rows = [
        (number / len(units.blocks[name]), block)
        for name in target
        for number, block in enumerate(units.blocks[name], 1)
        if block in units.needed and block in units.makers
    ]
    return [units.makers[block] for _, block in sorted(rows)]


def _group(units: Units, unit: int, together: int) -> Sequence[int]:
    if together == 1:
        return (unit,)
    return units.beside(unit, together)


def peak(
    units: Units, order: Sequence[int], source: Collection[str], target: Collection[str], limit: int
) -> int:
    """Cells that live at most, what a row shares with a dying one counted once; some number above
    ``limit`` where that is exceeded."""
    every, sizes = units.units, units.sizes
    left: dict[int, int] = {}
    for number in order:
        for block, _ in every[number].reads:
            left[block] = left.get(block, 0) + 1
        left.setdefault(every[number].writes, 0)
    for name in target:
        left |= dict.fromkeys(units.blocks[name], WHOLE)
    here = set(units.held(source))
    most = live = sum(sizes[block] for block in here)
    live -= sum(sizes[block] for block in here if block not in left)
    for number in order:
        _, reads, block, _, within = every[number]
        died = saved = 0
        if block not in here:
            here.add(block)
            live += sizes[block]
            if not left[block]:
                died = sizes[block]
        for read, share in reads:
            left[read] -= 1
            if not left[read]:
                died += sizes[read]
                if share > saved:
                    saved = share
        if live - saved + within > most:
            most = live - saved + within
            if most > limit:
                return most
        live -= died
    return most
