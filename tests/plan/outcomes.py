"""Every outcome that a plan's timings allow, on a machine that is as unkind as a real one may be.

Frame after frame in the same memory, of which only the input is written anew. What was never
written differs from run to run, and so does what a kernel leaves in its scratch. Whatever no
machine defines is the outcome ``STUCK``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice
from math import prod

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.tensor import Box, IntArray
from pipeline.plan.interpret import Interpreter
from pipeline.plan.storage import Stream
from pipeline.plan.unrolled import Env, Event, unroll
from pipeline.plan.vocabulary import Buffer, Compute, Plan, Signal, Step, Wait, value

STUCK = b"stuck"
Timed = list[tuple[Step, Env]]
State = tuple[tuple[bytes, int], ...]
"""Of each memory its bytes, and how far it was read if it is a stream."""

MOST_EVENTS = 20_000
MOST_BYTES = 1 << 20
MOST_STATES = 200
"""That the search for timings looks at in one run; where there are more, others are drawn."""
DRAWN = 3


class UndefinedError(Exception):
    """No machine says what happens now."""


class Machine(Interpreter):
    """An interpreter that refuses what a machine would not do, or not always in the same way.

    Sums are kept without rounding, so that the same plan in another order gives the same bytes: one
    unit of a step ``s`` is the number ``2 s - 1`` modulo two to the accumulator's bits, which has
    an inverse; what was added in one step and is read in another is nonsense.
    """

    loaded = False

    def __init__(self, plan: Plan, graph: Graph, frames: IntArray, garbage: int) -> None:
        for buffer in plan.buffers:
            if max(map(abs, buffer.extent)) > 2 * MOST_BYTES or prod(buffer.shape) > MOST_BYTES:
                raise UndefinedError(f"{buffer.name} is larger than a test's memory")
        super().__init__(plan, graph, frames)
        self.garbage = garbage
        for storage in self.storage.values():
            storage.bytes[:] = garbage
        self.load(frames, {graph.input, *graph.constants})

    def load(self, frames: IntArray, tensors: set[str]) -> None:
        """Write the resident buffers of ``tensors``; ``frames``: (frames of the plan, *shape)."""
        self.loaded = False
        if len(frames) != self.plan.frames:
            raise UndefinedError("the plan is for another number of frames")
        for storage in self.storage.values():
            if isinstance(storage, Stream):
                storage.next_nibble = 0
        for name in self.plan.resident:
            buffer = self.plan.buffer[name]
            if buffer.tensor in tensors:
                constant = buffer.tensor in self.graph.constants
                each = self.graph.constants[buffer.tensor][None] if constant else frames
                for number, values in enumerate(each):
                    self.write(buffer.at(number), buffer.box, np.asarray(values, dtype=np.int64))
        self.loaded = True

    def outputs(self) -> bytes:
        output = self.plan.buffer[self.plan.output]
        each = [self.read(output.at(n), output.box) for n in range(self.plan.frames)]
        return b"".join(values.tobytes() for values in each)

    @property
    def state(self) -> State:
        return tuple(
            (s.bytes.tobytes(), getattr(s, "next_nibble", 0)) for s in self.storage.values()
        )

    @state.setter
    def state(self, state: State) -> None:
        for storage, (content, place) in zip(self.storage.values(), state, strict=True):
            storage.bytes[:] = np.frombuffer(content, dtype=np.uint8)
            if isinstance(storage, Stream):
                storage.next_nibble = place

    def inside(self, buffer: Buffer, box: Box, writes: bool) -> None:
        memory = self.plan.memory[buffer.memory]
        low, high = buffer.extent
        if low < 0 or high > 2 * memory.bytes:
            cells = buffer.cells(box)
            if (cells < 0).any() or (cells >= 2 * memory.bytes).any():
                raise UndefinedError(f"{buffer.name} leaves {memory.name}")
        if writes and self.loaded and memory.kind in ("rom", "stream"):
            raise UndefinedError(f"{memory.name} is read-only")

    def read(self, buffer: Buffer, box: Box) -> IntArray:
        self.inside(buffer, box, writes=False)
        return super().read(buffer, box)

    def write(self, buffer: Buffer, box: Box, values: IntArray) -> None:
        self.inside(buffer, box, writes=True)
        super().write(buffer, box, values)

    def spoil(self, step: Compute) -> None:
        places = [self.plan.buffer[name] for name in step.scratch]
        for buffer in places:
            self.inside(buffer, buffer.box, writes=True)
            cells = buffer.cells(buffer.box) >> 1
            self.storage[buffer.memory].bytes[cells] = self.garbage
        used = [(b.memory, cell) for b in places for cell in np.unique(b.cells(b.box)).tolist()]
        if len(set(used)) < len(used):
            raise UndefinedError("a kernel's scratch overlaps another one of its own")

    def added(self, op: Operator, out: Buffer, held: IntArray, more: IntArray) -> IntArray:
        if op.combine != "add":
            return np.maximum(held, more)
        return held + more * unit(out)

    def finished(self, acc: Buffer, held: IntArray) -> IntArray:
        if acc.step == 1:
            return held
        whole = 1 << acc.bits
        sums = held * pow(unit(acc), -1, whole) % whole
        return np.where(sums < whole // 2, sums, sums - whole)


def unit(acc: Buffer) -> int:
    if not 1 <= acc.step < 1 << 31:
        raise UndefinedError(f"{acc.name} has units of {acc.step}")
    return 2 * acc.step - 1


def outcomes(plan: Plan, graph: Graph, inputs: IntArray, garbage: int = 0xA5) -> Iterator[bytes]:
    """What a run may give, one after the other: the outputs of ``inputs``, which have shape (runs,
    frames of the plan, *input's shape).

    All timings of the tracks, by a search over distinct states; those of a plan with too many of
    them are drawn.
    """
    try:
        with np.errstate(divide="raise", invalid="raise"):
            machine = Machine(plan, graph, inputs[0], garbage)
            tracks = [events(track.steps) for track in plan.tracks]
            yield from runs(machine, tracks, inputs, b"")
    except Exception:
        yield STUCK


def runs(machine: Machine, tracks: list[Timed], inputs: IntArray, said: bytes) -> Iterator[bytes]:
    """From what the memories hold now; ``said`` is what was given before."""
    if not len(inputs):
        yield said
        return
    machine.load(inputs[0], {machine.graph.input})
    found = set()
    for end in ends(machine, tracks):
        if end in found:
            continue
        found.add(end)
        machine.state = end
        yield from runs(machine, tracks, inputs[1:], said + machine.outputs())


def events(steps: tuple[Step, ...]) -> Timed:
    found = list(islice(unroll(steps, {}), MOST_EVENTS + 1))
    if len(found) > MOST_EVENTS:
        raise UndefinedError("there is no end to it")
    return found


def ends(machine: Machine, tracks: list[Timed]) -> Iterator[State]:
    """What the memories may hold at the end, from what they hold now.

    Raises:
        UndefinedError: a timing is stuck.
    """
    begin, drawn = machine.state, np.random.default_rng(0)
    if len(tracks) == 1:
        yield played(machine, tracks, min)
        return
    if (yield from searched(machine, tracks)):
        return
    for choose in (min, max, *[lambda able: able[int(drawn.integers(len(able)))]] * DRAWN):
        machine.state = begin
        yield played(machine, tracks, choose)


def played(machine: Machine, tracks: list[Timed], choose: Callable[[list[int]], int]) -> State:
    """The end under one timing."""
    places = [0] * len(tracks)
    while able := ready(tracks, places):
        track = choose(able)
        machine.step(Event(track, *tracks[track][places[track]]))
        places[track] += 1
    finished(tracks, places)
    return machine.state


def searched(machine: Machine, tracks: list[Timed]) -> Generator[State, None, bool]:
    """The ends under all timings, or those found within ``MOST_STATES`` states: then False."""
    pending, seen = [(advanced(tracks, [0] * len(tracks)), machine.state)], set()
    while pending and len(seen) < MOST_STATES:
        places, state = pending.pop()
        if (places, state) in seen:
            continue
        seen.add((places, state))
        able = ready(tracks, places)
        if not able:
            finished(tracks, places)
            yield state
        for track in able:
            machine.state = state
            machine.step(Event(track, *tracks[track][places[track]]))
            after = (*places[:track], places[track] + 1, *places[track + 1 :])
            pending.append((advanced(tracks, after), machine.state))
    return not pending


def advanced(tracks: list[Timed], places: Sequence[int]) -> tuple[int, ...]:
    """Past signals, and waits that are met: nothing more can happen while they are put off."""
    places = list(places)
    while True:
        able = [
            n for n in ready(tracks, places) if isinstance(at(tracks, places, n), Signal | Wait)
        ]
        if not able:
            return tuple(places)
        for n in able:
            places[n] += 1


def at(tracks: list[Timed], places: Sequence[int], track: int) -> Step:
    return tracks[track][places[track]][0]


def ready(tracks: list[Timed], places: Sequence[int]) -> list[int]:
    """The tracks that can go on."""
    waiting = [
        (n, *track[place])
        for n, (track, place) in enumerate(zip(tracks, places, strict=True))
        if place < len(track)
    ]
    if not any(isinstance(step, Wait) for _, step, _ in waiting):
        return [n for n, _, _ in waiting]
    signals = Counter(
        step.counter
        for track, place in zip(tracks, places, strict=True)
        for step, _ in track[:place]
        if isinstance(step, Signal)
    )
    return [
        n
        for n, step, env in waiting
        if not isinstance(step, Wait) or signals[step.counter] >= value(step.at_least, env)
    ]


def finished(tracks: list[Timed], places: Sequence[int]) -> None:
    if any(place < len(track) for track, place in zip(tracks, places, strict=True)):
        raise UndefinedError("every track waits")


def differs(plan: Plan, graph: Graph, inputs: IntArray, right: tuple[bytes, ...]) -> bool:
    """Whether any timing of ``plan`` gives anything else than ``wanted`` did."""
    each = zip(orders(inputs), right, strict=True)
    return any(said != good for run, good in each for said in outcomes(plan, graph, *run))


def wanted(plan: Plan, graph: Graph, inputs: IntArray) -> tuple[bytes, ...]:
    """What a sound plan gives."""
    found = [set(outcomes(plan, graph, *run)) for run in orders(inputs)]
    assert all(len(said) == 1 and STUCK not in said for said in found), "the plan is not sound"
    return tuple(said.pop() for said in found)


def orders(inputs: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Two runs: in either order, and no nibble of garbage is the same in both."""
    yield inputs, 0xA5
    yield inputs[::-1], 0x5A
