"""Random single mutations of plans, and every outcome that a plan's timings allow.

``python -m tests.plan.mutations`` prints how many mutants change an output, are rejected, or are
harmless and rejected all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.plan.interpret import Interpreter, interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import (
    Affine,
    Buffer,
    Compute,
    Lin,
    Loop,
    Plan,
    PlanError,
    Signal,
    Slice,
    Step,
    Table,
    Track,
    Wait,
    packed,
    value,
)
from pipeline.plan.walk import Event, unroll
from tests.plan.fixtures import FIXTURES, double_buffer

Rng = np.random.Generator


def pick(rng: Rng, items: list[Any]) -> Any:
    return items[int(rng.integers(len(items)))]


def nudge(rng: Rng, number: int) -> int:
    return number + pick(rng, [-4, -2, -1, 1, 2, 4])


def rewrite(rng: Rng, root: Any, cls: tuple[type, ...], change: Callable[[Any], Any]) -> Any:
    """``root`` with one random instance of ``cls`` inside it changed; None if there is none."""
    found: list[tuple[Any, ...]] = []

    def search(node: Any, path: tuple[Any, ...]) -> None:
        if isinstance(node, cls):
            found.append(path)
        if is_dataclass(node):
            for field in fields(node):
                search(getattr(node, field.name), (*path, field.name))
        elif isinstance(node, tuple):
            for n, item in enumerate(node):
                search(item, (*path, n))

    def rebuild(node: Any, path: tuple[Any, ...]) -> Any:
        if not path:
            return change(node)
        head, rest = path[0], path[1:]
        if isinstance(head, str):
            return replace(node, **{head: rebuild(getattr(node, head), rest)})
        return (*node[:head], rebuild(node[head], rest), *node[head + 1 :])

    search(root, ())
    return rebuild(root, pick(rng, found)) if found else None


def shifted_address(rng: Rng, plan: Plan) -> Plan | None:
    def change(map_: Affine | Table) -> Affine | Table:
        if isinstance(map_, Table):
            cells = list(map_.cells)
            n = int(rng.integers(len(cells)))
            cells[n] = nudge(rng, cells[n])
            return Table(tuple(cells))
        if rng.random() < 0.6:
            return replace(map_, base=nudge(rng, map_.base))
        axis = int(rng.integers(len(map_.strides)))
        if map_.wrap and rng.random() < 0.5:
            wrap = list(map_.wrap)
            wrap[axis] = max(0, nudge(rng, wrap[axis]))
            return replace(map_, wrap=tuple(wrap))
        strides = list(map_.strides)
        strides[axis] = nudge(rng, strides[axis])
        return replace(map_, strides=tuple(strides))

    buffers = rewrite(rng, plan.buffers, (Affine, Table), change)
    return replace(plan, buffers=buffers)


def _bodies(rng: Rng, plan: Plan, change: Callable[[tuple[Step, ...]], Any]) -> Plan | None:
    def loop(node: Loop | Track) -> Loop | Track:
        if isinstance(node, Track):
            return replace(node, steps=change(node.steps))
        return replace(node, body=change(node.body))

    tracks = rewrite(rng, plan.tracks, (Loop, Track), loop)
    return replace(plan, tracks=tracks)


def swapped_steps(rng: Rng, plan: Plan) -> Plan | None:
    def change(body: tuple[Step, ...]) -> tuple[Step, ...]:
        if len(body) < 2:
            return body
        n = int(rng.integers(len(body) - 1))
        return (*body[:n], body[n + 1], body[n], *body[n + 2 :])

    return _bodies(rng, plan, change)


def dropped_step(rng: Rng, plan: Plan) -> Plan | None:
    def change(body: tuple[Step, ...]) -> tuple[Step, ...]:
        n = int(rng.integers(len(body)))
        return (*body[:n], *body[n + 1 :])

    return _bodies(rng, plan, change)


def doubled_step(rng: Rng, plan: Plan) -> Plan | None:
    def change(body: tuple[Step, ...]) -> tuple[Step, ...]:
        n = int(rng.integers(len(body)))
        return (*body[: n + 1], body[n], *body[n + 1 :])

    return _bodies(rng, plan, change)


def wrong_slice(rng: Rng, plan: Plan) -> Plan | None:
    def change(piece: Slice) -> Slice:
        axis = int(rng.integers(len(piece.lo)))
        if rng.random() < 0.5:
            size = list(piece.size)
            size[axis] = max(0, nudge(rng, size[axis]))
            return replace(piece, size=tuple(size))
        lo = list(piece.lo)
        low = lo[axis]
        if isinstance(low, Lin):
            lo[axis] = replace(low, const=nudge(rng, low.const))
        else:
            lo[axis] = nudge(rng, low)
        return replace(piece, lo=tuple(lo))

    tracks = rewrite(rng, plan.tracks, (Slice,), change)
    return replace(plan, tracks=tracks) if tracks else None


def wrong_number(rng: Rng, plan: Plan) -> Plan | None:
    """A loop's count, a wait's threshold, a coefficient, a unit, an order or a flag."""

    def change(node: Any) -> Any:
        match node:
            case Loop():
                return replace(node, count=max(0, node.count + pick(rng, [-1, 1])))
            case Wait(at_least=Lin() as level):
                return replace(
                    node, at_least=replace(level, const=level.const + pick(rng, [-1, 1]))
                )
            case Lin(coef=((name, factor), *rest)):
                return replace(node, coef=((name, factor + pick(rng, [-1, 1])), *rest))
            case Compute(order=(_, _, *_)) if rng.random() < 0.7:
                order = list(node.order)
                a, b = rng.choice(len(order), 2, replace=False)
                order[a], order[b] = order[b], order[a]
                if rng.random() < 0.2:
                    order[a] = tuple(n + int(rng.integers(2)) for n in order[a])
                return replace(node, order=tuple(order))
            case Compute(unit=(_, *_)) if rng.random() < 0.5:
                unit = list(node.unit)
                axis = int(rng.integers(len(unit)))
                unit[axis] = max(1, unit[axis] + pick(rng, [-1, 1]))
                return replace(node, unit=tuple(unit))
            case Compute():
                return replace(node, partial=not node.partial)
        return node

    tracks = rewrite(rng, plan.tracks, (Loop, Wait, Lin, Compute), change)
    return replace(plan, tracks=tracks)


def wrong_buffer(rng: Rng, plan: Plan) -> Plan | None:
    """A buffer's width, role, memory or tensor."""

    def change(buffer: Buffer) -> Buffer:
        match pick(rng, ["bits", "role", "memory", "tensor"]):
            case "bits":
                return replace(buffer, bits=pick(rng, [4, 8, 16, 32]))
            case "role":
                roles = ["activation", "accumulator", "constant", "scratch"]
                return replace(buffer, role=pick(rng, roles))
            case "memory":
                return replace(buffer, memory=pick(rng, [m.name for m in plan.memories]))
        return replace(buffer, tensor=pick(rng, [b.tensor for b in plan.buffers]))

    return replace(plan, buffers=rewrite(rng, plan.buffers, (Buffer,), change))


def wrong_residents(rng: Rng, plan: Plan) -> Plan | None:
    chosen = list(plan.resident)
    if rng.random() < 0.5:
        chosen.remove(pick(rng, chosen))
    else:
        chosen.append(pick(rng, [b.name for b in plan.buffers]))
    return replace(plan, resident=tuple(chosen))


def added_scratch(rng: Rng, plan: Plan) -> Plan | None:
    """A kernel that destroys some nibbles which the plan did not grant it."""
    place = packed((4,), 8, 2 * int(rng.integers(plan.memory["sram"].bytes - 4)))
    scratch = Buffer("new scratch", "", "sram", (4,), 8, place, "scratch")
    tracks = rewrite(
        rng, plan.tracks, (Compute,), lambda step: replace(step, scratch=("new scratch",))
    )
    return replace(plan, buffers=(*plan.buffers, scratch), tracks=tracks)


MUTATORS = (
    shifted_address,
    swapped_steps,
    dropped_step,
    doubled_step,
    wrong_slice,
    wrong_number,
    wrong_buffer,
    wrong_residents,
    added_scratch,
)


def mutant(rng: Rng, plan: Plan) -> tuple[str, Plan]:
    """A plan that differs from ``plan`` in one place."""
    while True:
        mutate = pick(rng, list(MUTATORS))
        try:
            changed = mutate(rng, plan)
        except PlanError:  # no plan at all
            continue
        if changed is not None and changed != plan:
            return mutate.__name__, changed


def outcomes(plan: Plan, graph: Graph, frame: IntArray, limit: int = 4000) -> set[bytes]:
    """The outputs under *all* interleavings of the tracks: a search over distinct states.

    A state is how far each track is and what every memory holds. A run that cannot go on or that
    leaves its memory is the outcome ``b"stuck"``.
    """
    tracks = [list(unroll(track.steps, {})) for track in plan.tracks]
    try:
        machine = Interpreter(plan, graph, frame)
    except Exception:
        return {b"stuck"}
    names = list(machine.storage)
    start = tuple(machine.storage[name].bytes.tobytes() for name in names)
    if len(tracks) == 1:
        return sampled(plan, graph, frame, np.random.default_rng(0), 1)
    pending, seen, found = [((0,) * len(tracks), start)], set(), set()
    while pending:
        state = pending.pop()
        if state in seen:
            continue
        seen.add(state)
        assert len(seen) < limit, "too many states for a full search"
        places, contents = state
        counters: dict[str, int] = {}
        for track, place in zip(tracks, places, strict=True):
            for step, _ in track[:place]:
                if isinstance(step, Signal):
                    counters[step.counter] = counters.get(step.counter, 0) + 1
        moved = False
        for n, (track, place) in enumerate(zip(tracks, places, strict=True)):
            if place == len(track):
                continue
            step, env = track[place]
            if isinstance(step, Wait) and counters.get(step.counter, 0) < value(step.at_least, env):
                continue
            moved = True
            after = (*places[:n], place + 1, *places[n + 1 :])
            for name, content in zip(names, contents, strict=True):
                machine.storage[name].bytes[:] = np.frombuffer(content, dtype=np.uint8)
            try:
                machine.step(Event(n, step, env))
            except Exception:
                found.add(b"stuck")
                continue
            pending.append((after, tuple(machine.storage[name].bytes.tobytes() for name in names)))
        if not moved:
            finished = all(p == len(t) for p, t in zip(places, tracks, strict=True))
            found.add(_output(machine, plan, names, contents) if finished else b"stuck")
    return found


def _output(
    machine: Interpreter, plan: Plan, names: list[str], contents: tuple[bytes, ...]
) -> bytes:
    for name, content in zip(names, contents, strict=True):
        machine.storage[name].bytes[:] = np.frombuffer(content, dtype=np.uint8)
    output = plan.buffer[plan.output]
    return bytes(machine.read(output, output.box).tobytes())


def sampled(plan: Plan, graph: Graph, frame: IntArray, rng: Rng, count: int) -> set[bytes]:
    """The outputs under ``count`` random interleavings."""
    found = set()
    for _ in range(count):
        try:
            result = interpret(plan, graph, frame, lambda ready: pick(rng, ready))
        except Exception:
            return {b"stuck"}
        found.add(result.output.tobytes())
        if len(found) > 1:
            break
    return found


@dataclass
class Tally:
    mutants: int = 0
    changed: int = 0
    changed_accepted: int = 0
    harmless: int = 0
    harmless_rejected: int = 0


def accepted(plan: Plan, graph: Graph) -> bool:
    try:
        verify(plan, graph)
    except ThimbleError:
        return False
    return True


def subject(name: str, rng: Rng) -> tuple[Plan, Graph, IntArray, list[bytes]]:
    """A fixture, two random frames and their outputs; ``larger`` has too many states to list."""
    plan, graph = double_buffer(rng, tiles=12) if name == "larger" else FIXTURES[name](rng)
    tensor = graph.tensors[graph.input]
    frames = rng.integers(tensor.dtype.minimum, tensor.dtype.maximum + 1, (2, *tensor.shape))
    return plan, graph, frames, [graph.outputs(frame[None])[0].tobytes() for frame in frames]


def changes_output(name: str, plan: Plan, graph: Graph, frame: IntArray, right: bytes) -> bool:
    """Does any timing of ``plan`` give another output than ``right``, or none?"""
    if name == "larger":
        return sampled(plan, graph, frame, np.random.default_rng(0), 100) != {right}
    return outcomes(plan, graph, frame) != {right}


def trial(name: str, seed: int, mutants: int) -> Tally:
    rng = np.random.default_rng(seed)
    plan, graph, frames, wanted = subject(name, rng)
    tally = Tally()
    for _ in range(mutants):
        _, changed = mutant(rng, plan)
        differs = any(
            changes_output(name, changed, graph, frame, right)
            for frame, right in zip(frames, wanted, strict=True)
        )
        sound = accepted(changed, graph)
        tally.mutants += 1
        tally.changed += differs
        tally.harmless += not differs
        tally.harmless_rejected += not differs and not sound
        tally.changed_accepted += sound and differs
    return tally


if __name__ == "__main__":
    print(f"{'plan':16} {'mutants':>8} {'change an output':>17} {'accepted':>9} ", end="")
    print(f"{'harmless':>9} {'rejected':>9}")
    for fixture in (*FIXTURES, "larger"):
        t = trial(fixture, 1, 400)
        print(f"{fixture:16} {t.mutants:8} {t.changed:17} {t.changed_accepted:9} ", end="")
        print(f"{t.harmless:9} {t.harmless_rejected:9}")
