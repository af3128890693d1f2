"""Costs of each step of a plan in each of its runs: time, and bytes of the card."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.plan import pieces
from pipeline.plan.pieces import Pieces
from pipeline.plan.rates import Rates, work
from pipeline.plan.vocabulary import Buffer, Compute, Finish, Move, Plan, Signal, Slice, Step, Wait
from pipeline.timing.transfers import ends, transfers
from pipeline.timing.unroll import Runs, Times

Kind = Literal["compute", "read", "write", "signal", "wait", "free"]


@dataclass
class TimedStep:
    """One leaf step in all of its runs.

    Attributes:
        kind: ``compute``; ``read`` and ``write`` move from and to the card; ``free`` takes no time.
        op: the layer it is for: whose output it computes or stores, or whose input it loads.
        us: (runs,) durations; of a wait the level it waits for.
        counter: that a signal or a wait names.
        bytes: (runs,) that a move carries.
        stored: (runs,) bytes that a write makes the card store: whole blocks.
        ends: (runs, 2) of a write, the card's bytes from the first to behind the last.
        sealing_us: (runs,) of a move: the core seals or opens it, and nothing else goes on.
    """

    kind: Kind
    op: str
    us: Times
    counter: str = ""
    bytes: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    stored: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    ends: IntArray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    sealing_us: Times = field(default_factory=lambda: np.zeros(0))


@dataclass
class Costs:
    """Visits the leaves of a plan in order and says what each costs.

    Attributes:
        measured: microseconds of an operator's whole output, where a kernel was measured; the
            others cost ``rates.compute_us``.
    """

    plan: Plan
    graph: Graph
    rates: Rates
    measured: Mapping[str, float] = field(default_factory=dict)
    tasks: list[TimedStep] = field(default_factory=list)
    _parts: list[TimedStep] = field(default_factory=list)
    _element_us: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.operators = {op.name: op for op in self.graph.operators}
        self.makes = {op.output: op.name for op in self.graph.operators}
        self.pieces = Pieces.of(self.plan) if self.rates.sealed and self.plan.on_card else None
        self.uses: dict[str, str] = {}
        for op in self.graph.operators:
            for name in (*op.inputs, *op.parameters):
                self.uses.setdefault(name, op.name)
        self._finished: defaultdict[str, float] = defaultdict(float)

    def visit(self, step: Step, runs: Runs) -> None:
        match step:
            case Compute():
                task = TimedStep("compute", step.op, self._compute(step, runs))
            case Finish():
                self._finished[step.op] += float(self._elements(step.out, runs).sum())
                task = TimedStep("free", step.op, np.zeros(runs.count))
            case Move():
                task = self._move(step, runs)
            case Signal(counter=counter):
                task = TimedStep("signal", "", np.zeros(runs.count), counter)
            case Wait(counter=counter, at_least=level):
                task = TimedStep("wait", "", runs.values(level).astype(float), counter)
            case _:
                task = TimedStep("free", "", np.zeros(runs.count))
        self.tasks.append(task)
        if isinstance(step, Compute) and step.partial:
            self._parts.append(task)

    def close(self) -> None:
        """Spread the time of operators that are computed in parts over these."""
        for name in {task.op for task in self._parts}:
            parts = [task for task in self._parts if task.op == name]
            shares = sum(float(task.us.sum()) for task in parts)
            elements = self._finished[name] or self.graph.tensors[self.operators[name].output].size
            for task in parts:
                task.us = task.us * (elements * self.element_us(name) / shares if shares else 0.0)

    def element_us(self, name: str) -> float:
        """Time of one output element of an operator."""
        if name not in self._element_us:
            op = self.operators[name]
            whole_us = self.measured.get(name, self.rates.compute_us(work(op, self.graph)))
            self._element_us[name] = whole_us / self.graph.tensors[op.output].size
        return self._element_us[name]

    def _compute(self, step: Compute, runs: Runs) -> Times:
        """Durations; of a part, its share: outputs times the part of the sum that is there."""
        elements = self._elements(step.out, runs)
        if not step.partial:
            whole: Times = elements * self.element_us(step.op)
            return whole
        op = self.operators[step.op]
        weights = op.parameters[0] if op.parameters else ""
        there = np.ones(runs.count)
        for piece in step.ins:
            if self.plan.buffer[piece.buffer].tensor in op.parameters[1:]:
                continue
            shape = self.plan.buffer[piece.buffer].shape
            # of weights what one output needs; of an image its channels, of other inputs all
            held = self.plan.buffer[piece.buffer].tensor == weights
            axes = (
                slice(1, None)
                if held
                else slice(0 if op.reads_all(self.graph.tensors) else -1, None)
            )
            extents = _boxes(piece, shape, runs)[1][:, axes]
            there = np.minimum(there, (extents / np.array(shape[axes])).prod(axis=1))
        return elements * there

    def _elements(self, piece: Slice, runs: Runs) -> Times:
        found = _boxes(piece, self.plan.buffer[piece.buffer].shape, runs)[1]
        return np.asarray(found.prod(axis=1), dtype=float)

    def _move(self, step: Move, runs: Runs) -> TimedStep:
        source, target = self.plan.buffer[step.src.buffer], self.plan.buffer[step.dst.buffer]
        on_card = [buffer.name in self.plan.on_card for buffer in (source, target)]
        op = self.uses.get(source.tensor, "") if on_card[0] else self.makes.get(source.tensor, "")
        if not any(on_card):
            return TimedStep("free", op, np.zeros(runs.count))
        writes = on_card[1]
        buffer, piece = (target, step.dst) if writes else (source, step.src)
        lows, extents = _boxes(piece, buffer.shape, runs)
        if self.pieces is not None:
            places = ends(buffer, lows, extents, np.zeros(runs.count, np.int64))
            near = source if writes else target
            return self._sealed("write" if writes else "read", op, near, piece, runs, places)
        shift = runs.values(piece.copy) % buffer.copies * buffer.copy_stride
        block_bytes = self.rates.block_bytes
        moved = transfers(buffer, lows, extents, block_bytes, shift)
        us = self._transfer_us(moved.bytes, moved.blocks, moved.commands, writes)
        if writes:  # a block written in part is read first
            us = us + self._transfer_us(
                moved.partial * block_bytes, moved.partial, moved.partial, writes=False
            )
        stored = moved.blocks * block_bytes if block_bytes > 1 else moved.bytes
        if not writes:
            return TimedStep("read", op, us, bytes=moved.bytes)
        places = ends(buffer, lows, extents, shift)
        return TimedStep("write", op, us, bytes=moved.bytes, stored=stored, ends=places)

    def _sealed(
        self, kind: Literal["read", "write"], op: str, near: Buffer, moved: Slice, runs: Runs,
        places: IntArray,
    ) -> TimedStep:  # fmt: skip
        """Time moving pieces, a command each, in blocks of their own; the core seals or opens."""
        assert self.pieces is not None
        far = self.plan.buffer[moved.buffer]
        size, blocks, count = np.zeros((3, runs.count), np.int64)
        for n in range(runs.count):
            env = {name: int(values[n]) for name, values in runs.variables.items()}
            for run in pieces.runs(near, far, moved, env):
                each = list(self.pieces.sizes(far.name, run))
                size[n] += sum(each)
                blocks[n] += sum(map(self.pieces.blocks, each))
                count[n] += len(each)
        us = self._transfer_us(size, blocks, count, writes=kind == "write")
        cost = self.rates.sealing
        sealing_us = (size * cost.byte + count * cost.piece) / self.rates.clock_hz * 1e6
        task = TimedStep(kind, op, us, bytes=size, sealing_us=sealing_us)
        if kind == "write":
            task.stored, task.ends = blocks * self.rates.block_bytes, places
        return task

    def _transfer_us(
        self, size: IntArray, blocks: IntArray, commands: IntArray, writes: bool
    ) -> Times:
        rate = self.rates.write if writes else self.rates.read
        whole = self.rates.block_bytes
        passing = blocks * whole if whole > 1 else size
        us: Times = passing * rate.byte_us + commands * rate.command_us + blocks * rate.block_us
        return us


def _boxes(piece: Slice, shape: tuple[int, ...], runs: Runs) -> tuple[IntArray, IntArray]:
    """Low corners and extents of ``piece``, clipped to ``shape``: each (runs, axes)."""
    if runs.count == 1:  # most steps of an unrolled plan: without numpy
        env = {name: int(values[0]) for name, values in runs.variables.items()}
        box = piece.box(shape, env)
        return np.array([[low for low, _ in box]]), np.array([[stop - low for low, stop in box]])
    lows = np.stack([runs.values(low) for low in piece.lo], axis=1)
    stops = np.minimum(lows + np.array(piece.size), np.array(shape))
    lows = np.maximum(lows, 0)
    return lows, np.maximum(stops - lows, 0)
