"""Any movement of elements as rearrangements of up to three axes, and what joins their results.

Where the source says that an element comes from elsewhere (tiles, pixel shuffles, mirrored borders,
reversed slices, chosen indices), importers ask here which operators do it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, permutations
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError

Shape = tuple[int, ...]
Index = npt.NDArray[np.int64]

MOST_PARTS = 128
"""Runs of indices that are joined."""
MOST_AXES = 7
"""Axes that change their order at once: 5,040 orders are tried."""


@dataclass(frozen=True)
class Move:
    """The input as ``seen``, rearranged into ``shape``; fields as ``Rearrange`` has them."""

    seen: Shape
    shape: Shape
    axes: Shape
    starts: Shape
    steps: Shape
    repeats: Shape

    @classmethod
    def along(cls, seen: Shape, runs: Sequence[Run]) -> Move:
        """Return a run along each axis, in their order."""
        shape = tuple(run.count * run.repeat for run in runs)
        starts, steps, repeats = zip(*((r.start, r.step, r.repeat) for r in runs), strict=True)
        return cls(seen, shape, tuple(range(len(seen))), starts, steps, repeats)

    @property
    def fields(self) -> dict[str, Any]:
        """Return those of ``Rearrange``."""
        return {name: value for name, value in vars(self).items() if name != "seen"}

    @property
    def places(self) -> Index:
        """Find the place in the input of each element of the output, in order."""
        fields = zip(self.axes, self.starts, self.steps, self.repeats, strict=True)
        chosen = [np.arange(self.shape[a]) // by * step + low for a, low, step, by in fields]
        index = np.arange(prod(self.seen)).reshape(self.seen)[np.ix_(*chosen)]
        return index.transpose([self.axes.index(axis) for axis in range(len(self.axes))])


@dataclass(frozen=True)
class Run:
    """Indices ``start``, ``start + step``, …, ``count`` of them, each ``repeat`` times."""

    start: int
    step: int
    count: int
    repeat: int = 1


class Mover(Protocol):
    """Add operators; tensors go by their names."""

    def shaped(self, tensor: str, shape: Shape) -> str: ...
    def rearranged(self, tensor: str, move: Move) -> str: ...
    def joined(self, tensors: Sequence[str], axis: int) -> str: ...


def taken(to: Mover, tensor: str, shape: Shape, lists: Sequence[Sequence[int]]) -> str:
    """``tensor``, of ``shape``, of which each axis has the indices in its list.

    Raises:
        ThimbleError: indices that are in too many pieces.
    """
    pairs = zip(lists, shape, strict=True)
    runs = [_runs(np.asarray(each, np.int64), extent) for each, extent in pairs]
    for axis, parts in enumerate(runs):
        if len(parts) > MOST_PARTS:
            raise ThimbleError(
                f"indices in {len(parts)} pieces, such as {list(lists[axis])[:6]}: {MOST_PARTS} "
                "are supported"
            )
    if any(len(parts) > 1 for parts in runs):
        places = np.arange(prod(shape)).reshape(shape)[np.ix_(*lists)]
        if (moves := moved(places, prod(shape))) is not None and len(moves) < 3:
            return placed(to, tensor, moves, places.shape)
    whole = [Run(0, 1, extent) for extent in shape]
    once = [parts[0] if len(parts) == 1 else whole[n] for n, parts in enumerate(runs)]
    if once != whole:
        move = Move.along(shape, once)
        tensor, shape = to.rearranged(to.shaped(tensor, shape), move), move.shape
    for axis, parts in enumerate(runs):
        if len(parts) > 1:
            each = []
            for part in parts:
                along = [Run(0, 1, extent) for extent in shape]
                same, along[axis] = part == along[axis], part
                given = to.shaped(tensor, shape)
                each.append(given if same else to.rearranged(given, Move.along(shape, along)))
            tensor = to.joined(each, axis)
            shape = (*shape[:axis], len(lists[axis]), *shape[axis + 1 :])
    return to.shaped(tensor, shape)


def flanked(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Count what is before an axis, its extent, and what is after it."""
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])


def placed(to: Mover, tensor: str, moves: Sequence[Move], shape: Shape) -> str:
    """``tensor`` after all moves, in ``shape``."""
    for move in moves:
        tensor = to.rearranged(to.shaped(tensor, move.seen), move)
    return to.shaped(tensor, shape)


def _runs(indices: Index, extent: int) -> list[Run]:
    """Split indices; all of the axis in order is a run of its own, which costs nothing."""
    rest, every = indices.tolist(), list(range(extent))
    for first in range(len(rest) - extent + 1) if extent > 1 else ():
        if rest[first : first + extent] == every:
            ahead, behind = indices[:first], indices[first + extent :]
            return [*_split(ahead), Run(0, 1, extent), *_split(behind)]
    return _split(indices)


def regular(indices: Index) -> bool:
    """Check whether they are one run."""
    return len(_split(indices)) == 1


def _split(indices: Index) -> list[Run]:
    """Return the longest run from the first index on, and so forth."""
    found, rest = list[Run](), indices.tolist()
    while rest:
        repeat = next((n for n, index in enumerate(rest) if index != rest[0]), len(rest))
        groups = [rest[n : n + repeat] for n in range(0, len(rest), repeat)]
        step = groups[1][0] - rest[0] if len(groups) > 1 else 1
        count = 1
        while count < len(groups) and groups[count] == [rest[0] + count * step] * repeat:
            count += 1
        found.append(Run(rest[0], step if count > 1 else 1, count, repeat))
        rest = rest[count * repeat :]
    return found


def moved(places: Index, size: int) -> list[Move] | None:
    """Rearrangements, one after the other, after which element i is the one at ``places[i]`` of
    ``size`` now; None where no loops of even distances do it."""
    flat = places.reshape(-1)
    loops = _loops(flat)
    if loops is None:
        return None
    apart = [abs(distance) for _, distance in loops]
    far = sorted((d for d, each in enumerate(apart) if each), key=lambda d: -apart[d])
    extents, runs, order = list[int](), list[Run](), list[int]()
    left, first = size, int(flat[0])
    for d in far:
        count, distance = loops[d]
        stride = int(np.gcd(abs(distance), left))
        extents.append(left // stride)
        runs.append(Run(first // stride, distance // stride, count))
        left, first = stride, first % stride
    if left > 1:
        extents.append(left)
        runs.append(Run(first, 1, 1))
    for d, (count, distance) in enumerate(loops):  # the output's axes, outermost first
        if distance:
            order.append(far.index(d))
        elif d and loops[d - 1][1]:
            runs[order[-1]] = Run(*_plain(runs[order[-1]]), count)
        else:
            extents.append(1)
            runs.append(Run(0, 1, 1, count))
            order.append(len(runs) - 1)
    order += [axis for axis in range(len(runs)) if axis not in order]
    found = list(_within_three(extents, runs, order))
    now = np.arange(size)
    try:
        for move in found:
            now = now[move.places.reshape(-1)]
    except IndexError:  # a loop that crosses the rows of the one around it
        return None
    return found if now.shape == flat.shape and (now == flat).all() else None


def _plain(run: Run) -> tuple[int, int, int]:
    return run.start, run.step, run.count


def _loops(rest: Index) -> list[tuple[int, int]] | None:
    """(extent, distance) of nested loops over places, outermost first."""
    loops = list[tuple[int, int]]()
    while rest.size > 1:
        distance = int(rest[1] - rest[0])
        broken = np.flatnonzero(np.diff(rest) != distance)
        extent = int(broken[0]) + 1 if len(broken) else rest.size
        if rest.size % extent:
            return None
        rows = rest.reshape(-1, extent)
        if (rows != rows[:, :1] + distance * np.arange(extent)).any():
            return None
        loops.append((extent, distance))
        rest = rows[:, 0]
    return loops[::-1]


def _within_three(extents: list[int], runs: list[Run], order: list[int]) -> Iterator[Move]:
    """The move, as one or as several of up to three axes: choose, change the order, repeat."""
    if len(extents) > MOST_AXES:
        return
    seen: Shape
    if len(extents) <= 3:
        whole = runs == [Run(0, 1, extent) for extent in extents]
        if not whole or order != sorted(order):
            yield _ordered(extents, runs, order)
        return
    for axis, run in enumerate(runs):
        if _plain(run) != (0, 1, extents[axis]):
            seen = flanked(extents, axis)
            middle = Run(*_plain(run))
            yield Move.along(seen, [Run(0, 1, seen[0]), middle, Run(0, 1, seen[2])])
            extents[axis] = run.count
    now = [axis for axis in range(len(extents)) if extents[axis] > 1]
    for groups, turned in _turns(tuple(now), tuple(axis for axis in order if extents[axis] > 1)):
        seen = tuple(prod(extents[axis] for axis in group) for group in groups)
        yield _ordered(list(seen), [Run(0, 1, n) for n in seen], list(turned))
    for place, axis in enumerate(order):
        if runs[axis].repeat > 1:
            ahead, behind = order[:place], order[place + 1 :]
            seen = prod(extents[a] for a in ahead), extents[axis], prod(extents[a] for a in behind)
            middle = Run(0, 1, extents[axis], runs[axis].repeat)
            yield Move.along(seen, [Run(0, 1, seen[0]), middle, Run(0, 1, seen[2])])
            extents[axis] *= runs[axis].repeat


def _ordered(extents: list[int], runs: Sequence[Run], order: list[int]) -> Move:
    """``order``: the input's axes as the output has them."""
    move = Move.along(tuple(extents), runs)
    axes, shape = (order.index(axis) for axis in range(len(order))), (move.shape[a] for a in order)
    return Move(move.seen, tuple(shape), tuple(axes), move.starts, move.steps, move.repeats)


Turn = tuple[tuple[Shape, ...], Shape]


def _turns(now: Shape, wanted: Shape) -> list[Turn]:
    """Return the fewest steps from an order of axes to another, of which each changes the order of
    three groups of neighbours: the groups, and the order."""
    came = dict[Shape, tuple[Shape, Turn] | None]({now: None})
    level = [now]
    while wanted not in came:
        following = []
        for each in level:
            for a, b in combinations_with_replacement(range(len(each) + 1), 2):
                groups = each[:a], each[a:b], each[b:]
                for turned in permutations(range(3)):
                    made = tuple(axis for group in turned for axis in groups[group])
                    if made not in came:
                        came[made] = each, (groups, turned)
                        following.append(made)
        level = following
    found = list[Turn]()
    while (step := came[wanted]) is not None:
        wanted, turn = step
        found.append(turn)
    return found[::-1]
