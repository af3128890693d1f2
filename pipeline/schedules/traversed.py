"""A chain in place: every tensor lies where a search put it, and outputs overwrite dead inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Buffer, Step
from pipeline.schedules.bounds import Box, needs
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


@dataclass(frozen=True)
class Turn:
    """The elements ``box`` of a tensor move from ``source`` to ``target``: a permutation."""

    source: Buffer
    target: Buffer
    box: Box


@dataclass(frozen=True)
class Traversed:
    """``buffers`` have their addresses already; the last run makes the output."""

    buffers: tuple[Buffer, ...]
    runs: tuple[Run | Turn, ...]

    def steps(self, draft: Draft) -> list[Step]:
        for buffer in self.buffers:
            draft.put(replace(buffer, memory=draft.hardware.activation_memory))
        return [self._step(draft, run) for run in self.runs]

    def _step(self, draft: Draft, run: Run | Turn) -> Step:
        if isinstance(run, Turn):
            draft.home[run.target.tensor] = run.target.name
            return draft.move(run.source, run.target, run.box)
        draft.home |= {source.tensor: source.name for source in run.sources}
        over = [source.tensor for source in run.sources if _overwrites(draft, run, source)]
        step = draft.compute(run.op, run.target, run.made, over=over)
        draft.home[run.target.tensor] = run.target.name
        if not run.order:
            return step
        at_once = all(unit >= each.size for unit, each in zip(step.unit, run.made, strict=True))
        return step if at_once else replace(step, order=tuple(run.order))


def _overwrites(draft: Draft, run: Run, source: Buffer) -> bool:
    """Whether it writes a cell of ``source`` that it reads."""
    if not source.meets(run.target):
        return False
    read = needs(run.op, draft.graph.tensors, run.made)[source.tensor]
    taken, written = (
        buffer.cells(tuple(side.clipped(n).ends for side, n in zip(box, buffer.shape, strict=True)))
        for buffer, box in ((source, read), (run.target, run.made))
    )
    return bool(np.isin(written, taken).any())
