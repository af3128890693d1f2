"""Compute what a plan costs, from the plan alone: peak memory, work and traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from pipeline.graph.access import size_of
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import Box, IntArray
from pipeline.hardware import Hardware
from pipeline.plan.steps import touched
from pipeline.plan.unrolled import walk
from pipeline.plan.verify import Report, verify
from pipeline.plan.vocabulary import KEPT, Buffer, Clear, Compute, Finish, Move, Plan, Step


@dataclass(frozen=True)
class Moment:
    """A stretch of steps over which the same buffers are live.

    Attributes:
        step: number of its first step in the unrolled plan.
        label: the operator (or move) that it begins with.
        live_bytes: distinct bytes that the live buffers cover; overlap counts once.
        buffers: (buffer, bytes on its own) for each live one.
    """

    step: int
    label: str
    live_bytes: float
    buffers: tuple[tuple[str, float], ...]

    @property
    def apart_bytes(self) -> float:
        """Return the bytes that the live buffers would take without sharing any."""
        return sum(size for _, size in self.buffers)


@dataclass(frozen=True)
class Cost:
    """Peak memory usage counts activations with the input and what is kept aside of those that are
    made in place, neither scratch nor weights, as the papers do; the arena is what has to be
    linked, scratch and alignment included.

    ``over_bound_bytes``: by how much the arena exceeds what is live at once, scratch included.
    """

    pmu_bytes: float
    arena_bytes: int
    over_bound_bytes: int
    macs: int
    macs_executed: int
    moved_bytes: dict[str, float]
    timeline: tuple[Moment, ...]

    @property
    def peak(self) -> Moment:
        """The moment with the most bytes live; of equals, the one that shares most."""
        return max(self.timeline, key=lambda moment: (moment.live_bytes, moment.apart_bytes))


ACTIVATIONS = ("activation", "accumulator", "aside")


def spans(plan: Plan) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Return the first and the last step of the walk that each buffer is used by; and what every
    step is called, "" where it only synchronises.

    Inputs and outputs are used from the first, and to the last, step; so are, to the last, inputs
    that are kept.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    labels: list[str] = []
    for event in walk(plan):
        scratch = event.step.scratch if isinstance(event.step, Compute) else ()
        for name in (*(piece.buffer for piece in touched(event.step)), *scratch):
            first.setdefault(name, len(labels))
            last[name] = len(labels)
        labels.append(_label(plan, event.step))
    end = len(labels) - 1
    for name in (*plan.outputs, *plan.states):
        first.setdefault(name, end)  # written through another buffer
    first |= dict.fromkeys(plan.resident, 0)
    kept = plan.inputs if dict(plan.notes).get(KEPT) else ()
    last |= dict.fromkeys((*plan.outputs, *plan.states, *kept), end)
    return {name: (first[name], stop) for name, stop in last.items()}, labels


def timeline(plan: Plan, roles: Sequence[str] = ACTIVATIONS) -> Iterator[Moment]:
    """Yield the live buffers of ``roles`` over the walk, each from its first to its last use."""
    used, labels = spans(plan)
    begins: dict[int, list[int]] = {}
    for number, buffer in enumerate(plan.buffers):
        if (
            buffer.role in roles
            and buffer.name in used
            and plan.memory[buffer.memory].kind == "ram"
        ):
            begins.setdefault(used[buffer.name][0], []).append(number)
    ends = {used[plan.buffers[number].name][1] + 1 for some in begins.values() for number in some}
    live: dict[int, tuple[IntArray, float]] = {}
    for turn in sorted({*begins, *ends}):
        live = {n: each for n, each in live.items() if turn <= used[plan.buffers[n].name][1]}
        for number in begins.get(turn, []):
            parts = intervals(plan.buffers[number])
            live[number] = parts, int((parts[:, 1] - parts[:, 0]).sum()) / 2
        if live:
            buffers = [(plan.buffers[number], *live[number]) for number in sorted(live)]
            covered = sum(
                _covered([parts for buffer, parts, _ in buffers if buffer.memory == memory])
                for memory in plan.memory
            )
            label = next((name for name in labels[turn:] if name), labels[turn])
            sizes = tuple((buffer.name, size) for buffer, _, size in buffers)
            yield Moment(turn, label, covered / 2, sizes)


def intervals(buffer: Buffer) -> IntArray:
    """Return the nibbles of ``buffer``, of all its copies, as sorted, disjoint intervals: shape (n,
    2), ends exclusive."""
    one = buffer.at(0)
    if buffer.run(buffer.held) is not None:
        found = np.array([one.extent], dtype=np.int64)
    else:  # what lies in a ring repeats beyond it
        rings = zip(buffer.held, buffer.wrap, strict=True)
        found = _adjacent(one, tuple((low, min(high, ring or high)) for (low, high), ring in rings))
    if buffer.copies == 1:
        return found
    shifts = buffer.copy_stride * np.arange(buffer.copies)
    every = (found[None] + shifts[:, None, None]).reshape(-1, 2)
    return merged(every[np.argsort(every[:, 0], kind="stable")])


def _adjacent(buffer: Buffer, box: Box) -> IntArray:
    """Return the elements of ``box`` as sorted, disjoint intervals of nibbles: (n, 2)."""
    first = np.sort(buffer.addresses(box), axis=None)
    return merged(np.stack([first, first + buffer.nibbles], axis=1))


def merged(parts: IntArray) -> IntArray:
    """Intervals (n, 2) sorted by their starts, those that touch or overlap made one."""
    until = np.maximum.accumulate(parts[:, 1])
    begins = np.concatenate([[True], parts[1:, 0] > until[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return np.stack([parts[begins, 0], until[ends]], axis=1)


def _covered(parts: list[IntArray]) -> int:
    """Distinct nibbles in all the intervals."""
    if not parts:
        return 0
    together = np.concatenate(parts)
    one = merged(together[np.argsort(together[:, 0], kind="stable")])
    return int((one[:, 1] - one[:, 0]).sum())


def _label(plan: Plan, step: Step) -> str:
    """Return the operator or the tensor moved; nothing for a step that only synchronises."""
    match step:
        case Compute(op=op) | Clear(op=op) | Finish(op=op):
            return op
        case Move(src=src):
            return f"move {plan.buffer[src.buffer].tensor}"
    return ""


def high_water_nibbles(plan: Plan, memory: str, constants: bool) -> int:
    """Return one past the highest nibble that a buffer of ``memory`` reaches; of RAM with a data
    cache, to the end of its line. 0 of a memory that the plan does not have."""
    has = plan.memory.get(memory)
    line = 2 * has.granule_bytes if has and has.kind == "ram" and has.granule_bytes > 1 else 1
    tops = [
        buffer.extent[1]
        for buffer in plan.buffers
        if buffer.memory == memory and (constants or buffer.role != "constant")
    ]
    return -(-max(tops, default=0) // line) * line


def moved_bytes(plan: Plan) -> dict[str, float]:
    """Bytes that ``Move`` steps carry, by ``source -> target`` memory."""
    moved: Counter[str] = Counter()
    for event in walk(plan):
        if isinstance(event.step, Move):
            source, target = event.step.src, event.step.dst
            buffer, to = plan.buffer[source.buffer], plan.buffer[target.buffer].memory
            size = size_of(source.box(buffer.shape, event.env))
            moved[f"{buffer.memory} -> {to}"] += size * buffer.nibbles
    return {way: nibbles / 2 for way, nibbles in sorted(moved.items())}


def cost(plan: Plan, graph: Graph, hardware: Hardware, proof: Report | None = None) -> Cost:
    """Return the cost of ``plan`` on ``hardware``; verify it first unless ``proof`` is given."""
    report = proof or verify(plan, graph)
    moments = tuple(timeline(plan))
    everything = timeline(plan, (*ACTIVATIONS, "scratch"))
    arena = sum(
        ceil(high_water_nibbles(plan, memory.name, constants=False) / 2)
        for memory in plan.memories
        if memory.kind == "ram"
    )
    return Cost(
        pmu_bytes=max((moment.live_bytes for moment in moments), default=0.0),
        arena_bytes=arena,
        over_bound_bytes=arena - ceil(max((m.live_bytes for m in everything), default=0.0)),
        macs=graph.macs,
        macs_executed=report.macs_executed,
        moved_bytes=moved_bytes(plan),
        timeline=moments,
    )
