"""A copy within one memory as what it is when places are shared: cycles, and chains that end."""

from __future__ import annotations

from collections.abc import Iterator

Cycle = tuple[int, ...]


def decompose(sources: list[int], targets: list[int]) -> tuple[list[Cycle], list[Cycle]]:
    """Cycles and chains of the copy ``targets[n] <- sources[n]``; what stays is left out.

    Each place takes over what its successor holds, the last one of a cycle what the first one held.
    """
    taken_from = {t: s for t, s in zip(targets, sources, strict=True) if t != s}
    read = set(taken_from.values())
    chains = [tuple(_follow(start, taken_from)) for start in taken_from if start not in read]
    done = {place for chain in chains for place in chain}
    cycles = []
    for start in taken_from:
        if start not in done:
            cycle = tuple(_follow(start, taken_from))
            done.update(cycle)
            cycles.append(cycle)
    return cycles, chains


def _follow(start: int, taken_from: dict[int, int]) -> Iterator[int]:
    yield start
    place = taken_from[start]
    while place != start:
        yield place
        if place not in taken_from:
            return
        place = taken_from[place]
