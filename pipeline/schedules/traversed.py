"""A chain in place: every tensor lies where a search put it, and outputs overwrite dead inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.graph.operator import Operator
from pipeline.plan.vocabulary import Buffer, Step
from pipeline.schedules.bounds import Box
from pipeline.schedules.draft import Draft


@dataclass(frozen=True)
class Run:
    """``op`` makes ``made`` in ``target`` from ``source``, pixels in ``order`` (relative to
    ``made``; empty: row-major)."""

    op: Operator
    source: Buffer
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
        draft.home[run.source.tensor] = run.source.name
        overlaps = {run.source.tensor} if run.source.meets(run.target) else set[str]()
        step = draft.compute(run.op, run.target, run.made, over=overlaps)
        draft.home[run.target.tensor] = run.target.name
        at_once = all(unit >= each.size for unit, each in zip(step.unit, run.made, strict=True))
        return replace(step, order=() if at_once else tuple(run.order))
