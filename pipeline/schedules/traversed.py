"""A chain in place: every tensor lies where a search put it, and outputs overwrite dead inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipeline.graph.operator import Operator
from pipeline.graph.tensor import IntArray
from pipeline.plan.vocabulary import Buffer, Step
from pipeline.schedules.bounds import Box, ranges
from pipeline.schedules.draft import Draft


@dataclass(frozen=True)
class Run:
    """``op`` makes ``made`` in ``target`` from ``sources``, pixels in ``order`` (relative to
    ``made``; empty: row-major)."""

    op: Operator
    sources: tuple[Buffer, ...]
    target: Buffer
    made: Box
    order: Sequence[tuple[int, ...]] = ()

    @classmethod
    def of(
        cls, op: Operator, sources: tuple[Buffer, ...], target: Buffer, pixels: IntArray,
        channels: tuple[int, int],
    ) -> Self:  # fmt: skip
        """``pixels`` in turn, (n, 2), of which they are all of a box; of a vector its elements are
        pixels of one row."""
        low, stop = pixels.min(axis=0), pixels.max(axis=0) + 1
        y, x = (pixels - low).T
        in_order = (np.diff(y * (stop[1] - low[1]) + x) > 0).all()
        order = [] if in_order else np.stack([y, x, np.zeros_like(x)], axis=1).tolist()
        box = (*zip(low.tolist(), stop.tolist(), strict=True), channels)
        if len(target.shape) == 1:
            box, order = box[1:2], [at[1:2] for at in order]
        return cls(op, sources, target, ranges(box), tuple(map(tuple, order)))


@dataclass(frozen=True)
class Turn:
    """The elements ``box`` of a tensor move from ``source`` to ``target``: a permutation."""

    source: Buffer
    target: Buffer
    box: Box


class Cells:
    """The nibbles of each buffer's elements."""

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.known: dict[str, NDArray[np.int32]] = {}
        self.taken = np.zeros(max((buffer.extent[1] for buffer in buffers), default=0), dtype=bool)

    def shared(self, source: Buffer, read: Box, target: Buffer, made: Box) -> bool:
        """Check whether a step writes a cell of ``source`` that it reads."""
        if not source.meets(target):
            return False
        cells = self._of(source, read)
        self.taken[cells] = True
        found = self.taken[self._of(target, made)].any()
        self.taken[cells] = False
        return bool(found)

    def _of(self, buffer: Buffer, box: Box) -> slice | NDArray[np.int32]:
        sides = tuple(side.clipped(n).ends for side, n in zip(box, buffer.shape, strict=True))
        if (first := buffer.run(sides)) is not None:
            return slice(first, first + buffer.nibbles * prod(stop - low for low, stop in sides))
        if buffer.name not in self.known:
            every = buffer.cells(buffer.box).astype(np.int32)
            self.known[buffer.name] = every.reshape(*buffer.shape, buffer.nibbles)
        return self.known[buffer.name][tuple(slice(*ends) for ends in sides)]


@dataclass(frozen=True)
class Traversed:
    """The decisions of a layout: where every tensor of a chain lives, and the steps that fill them.

    Attributes:
        buffers: with their addresses; the first one holds the chain's first tensor.
        runs: compute the chain from its first tensor; the last makes its last tensor.
        nibbles: the arena: no buffer of the chain reaches beyond it.
        beside: an address, a multiple of 8 nibbles, from which the first tensor leaves as many
            nibbles free as were asked for.
    """

    buffers: tuple[Buffer, ...]
    runs: tuple[Run | Turn, ...]
    nibbles: int
    beside: int

    def steps(self, draft: Draft) -> list[Step]:
        for buffer in self.buffers:
            draft.put(replace(buffer, memory=draft.hardware.activation_memory))
        cells = Cells(self.buffers)
        return [_step(draft, cells, run) for run in self.runs]


def _step(draft: Draft, cells: Cells, run: Run | Turn) -> Step:
    if isinstance(run, Turn):
        draft.home[run.target.tensor] = run.target.name
        return draft.move(run.source, run.target, run.box)
    draft.home |= {source.tensor: source.name for source in run.sources}
    read = draft.needs(run.op, run.made)
    over = [
        source.tensor
        for source in run.sources
        if cells.shared(source, read[source.tensor], run.target, run.made)
    ]
    step = draft.compute(run.op, run.target, run.made, over=over)
    draft.home[run.target.tensor] = run.target.name
    if not run.order:
        return step
    unit = step.unit or (1,) * len(run.made)
    if all(extent >= each.size for extent, each in zip(unit, run.made, strict=True)):
        return step
    firsts = range(0, run.made[-1].size, unit[-1])  # a pixel's channels one after the other
    order = tuple((*at[:-1], channel) for at in run.order for channel in firsts)
    return replace(step, order=order)
