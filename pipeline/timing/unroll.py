"""A track's steps in order, as arrays: loops are unrolled by numpy, not one step at a time.

Each leaf step (not a loop) is visited once, with its loop variables as arrays over all of its runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Index, Loop, Plan, Step

Times = npt.NDArray[np.float64]
Visit = Callable[[Step, "Runs"], None]


@dataclass(frozen=True)
class Runs:
    """All runs of a leaf step, in order.

    Attributes:
        count: how many.
        variables: of the loops around it: each (count,).
    """

    count: int
    variables: dict[str, IntArray]

    def values(self, index: Index) -> IntArray:
        """``index`` in each run: (count,)."""
        if isinstance(index, int) or not index.coef:
            only = index if isinstance(index, int) else index.const
            return np.full(self.count, only, dtype=np.int64)
        total = np.full(self.count, index.const, dtype=np.int64)
        for name, factor in index.coef:
            total += factor * self.variables[name]
        return total


@dataclass(frozen=True)
class Unrolled:
    """One track.

    Attributes:
        leaves: the leaf steps, in the order of the program.
        leaf: (events,) which of them each event is.
        run: (events,) which of that step's runs.
    """

    leaves: tuple[Step, ...]
    leaf: IntArray
    run: IntArray


def unrolled(plan: Plan, visit: Visit) -> tuple[Unrolled, ...]:
    """Return every track of ``plan``; ``visit`` sees each leaf step with all of its runs."""
    tracks = []
    for track in plan.tracks:
        leaves: list[Step] = []
        leaf, run = _steps(track.steps, Runs(1, {}), leaves, visit)
        tracks.append(Unrolled(tuple(leaves), leaf.reshape(-1), run.reshape(-1)))
    return tuple(tracks)


def _steps(
    steps: tuple[Step, ...], runs: Runs, leaves: list[Step], visit: Visit
) -> tuple[IntArray, IntArray]:
    """(leaf, run) of the events, each (runs.count, events of one run of ``steps``)."""
    found: list[tuple[IntArray, IntArray]] = []
    row = np.arange(runs.count).reshape(-1, 1)
    first = len(leaves)  # of the leaves since the last loop

    def flush() -> None:
        shape = (runs.count, len(leaves) - first)
        if shape[1]:
            numbers = np.arange(first, len(leaves))
            found.append((np.broadcast_to(numbers, shape), np.broadcast_to(row, shape)))

    for step in steps:
        if isinstance(step, Loop):
            flush()
            inside = {
                name: np.repeat(values, step.count) for name, values in runs.variables.items()
            }
            inside[step.var] = np.tile(np.arange(step.count), runs.count)
            many = Runs(runs.count * step.count, inside)
            leaf, run = _steps(step.body, many, leaves, visit)
            found.append((leaf.reshape(runs.count, -1), run.reshape(runs.count, -1)))
            first = len(leaves)
        else:
            visit(step, runs)
            leaves.append(step)
    flush()
    if not found:
        none = np.zeros((runs.count, 0), dtype=np.int64)
        return none, none
    leaf, run = (np.concatenate(parts, axis=1) for parts in zip(*found, strict=True))
    return leaf, run
