"""Mistakes of one field, and those that are of no single one: steps elsewhere, scratch, twins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from pipeline.graph.graph import Graph
from pipeline.plan.vocabulary import Buffer, Compute, Loop, Plan, Signal, Slice, Step, Track, packed
from tests.plan.changes import CHANGES, Rng, Site, wrong

Path = tuple[str | int, ...]
Steps = tuple[Step, ...]


def instances(root: Any, cls: type) -> list[Path]:
    """Where in a tree of dataclasses and tuples there are instances of ``cls``."""
    return [path for path, node in nodes(root) if isinstance(node, cls)]


def nodes(root: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The dataclasses in a tree of them and tuples, and where they are."""
    if is_dataclass(root):
        yield path, root
        parts: Any = ((each.name, getattr(root, each.name)) for each in fields(root))
    else:
        parts = enumerate(root)
    for name, part in parts:
        if is_dataclass(part) or type(part) is tuple:
            yield from nodes(part, (*path, name))


def at(root: Any, path: Path) -> Any:
    for step in path:
        root = getattr(root, step) if isinstance(step, str) else root[step]
    return root


def rebuilt(root: Any, path: Path, value: Any) -> Any:
    """``root`` with ``value`` at ``path``."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(head, str):
        return replace(root, **{head: rebuilt(getattr(root, head), rest, value)})
    return (*root[:head], rebuilt(root[head], rest, value), *root[head + 1 :])


def a_field(rng: Rng, plan: Plan, graph: Graph, only: str = "") -> tuple[str, Callable[[], Plan]]:
    """What is changed, and how to make the plan: a likely mistake in one field of one object, or
    seldom what no field holds. In any field, or ``only`` in this one: ``Buffer.bits``."""
    found: dict[type, list[Path]] = {}
    for path, node in nodes(plan):
        found.setdefault(type(node), []).append(path)
    names = [
        (cls, name)
        for cls in CHANGES
        if cls in found
        for name in CHANGES[cls]
        if only in ("", f"{cls.__name__}.{name}")
    ]
    cls, name = names[int(rng.integers(len(names)))]
    path = found[cls][int(rng.integers(len(found[cls])))]
    site = Site(rng, plan, graph, at(plan, path))
    unlikely = site.chance(0.1)
    value = (wrong if unlikely else CHANGES[cls][name])(site, getattr(site.node, name))
    kind = f"{cls.__name__}.{name}{' wrong' if unlikely else ''}"
    return kind, lambda: rebuilt(plan, (*path, name), value)


def with_body(rng: Rng, plan: Plan, change: Callable[[Steps], Steps]) -> Plan:
    """The steps of one track or loop that has any changed."""
    bodies = [(*path, "steps") for path in instances(plan, Track)]
    bodies += [(*path, "body") for path in instances(plan, Loop)]
    bodies = [path for path in bodies if at(plan, path)]
    path = bodies[int(rng.integers(len(bodies)))]
    return rebuilt(plan, path, change(at(plan, path)))


def a_step_in_a_loop(rng: Rng, plan: Plan) -> Plan:
    """Run by a loop of its own: never, once, twice or without end."""
    count = int(rng.choice([0, 1, 2, 3, 10**12]))

    def change(body: Steps) -> Steps:
        n = int(rng.integers(len(body)))
        return (*body[:n], Loop("new", count, body[n : n + 1]), *body[n + 1 :])

    return with_body(rng, plan, change)


def an_endless_loop(rng: Rng, plan: Plan) -> Plan:
    """Of nothing, or of signals, or very deep, at the end of a body."""
    loop = Loop("new", 10 ** int(rng.integers(9, 19)), (Signal("new"),) * int(rng.integers(2)))
    for level in range(int(rng.choice([0, 1, 40, 2000]))):
        loop = Loop(f"new{level}", 1, (loop,))
    return with_body(rng, plan, lambda body: (*body, loop))


def a_loop_left_out(rng: Rng, plan: Plan) -> Plan:
    """A loop's body in place of the loop: its variable is unknown. Without a loop, backwards."""

    def change(body: Steps) -> Steps:
        loops = [n for n, step in enumerate(body) if isinstance(step, Loop)]
        if not loops:
            return body[::-1]
        n = loops[int(rng.integers(len(loops)))]
        loop = body[n]
        assert isinstance(loop, Loop)
        return (*body[:n], *loop.body, *body[n + 1 :])

    return with_body(rng, plan, change)


def a_step_on_another_track(rng: Rng, plan: Plan) -> Plan:
    """The first or the last step of a track begins or ends another one, or one of its own."""
    tracks = [*plan.tracks, Track("new", ())]
    a, b = (int(n) for n in rng.choice(len(tracks), 2, replace=False))
    steps, end = tracks[a].steps, int(rng.integers(2))
    moved = steps[len(steps) - 1 :] if end else steps[:1]
    tracks[a] = replace(tracks[a], steps=steps[: len(steps) - 1] if end else steps[1:])
    there = tracks[b].steps
    tracks[b] = replace(tracks[b], steps=(*there, *moved) if rng.integers(2) else (*moved, *there))
    return replace(plan, tracks=tuple(track for track in tracks if track.steps))


def a_track_in_two(rng: Rng, plan: Plan) -> Plan:
    """From some step on, what one engine did another one does at the same time."""
    n = int(rng.integers(len(plan.tracks)))
    track = plan.tracks[n]
    cut = int(rng.integers(len(track.steps) + 1))
    first, second = replace(track, steps=track.steps[:cut]), Track("new", track.steps[cut:])
    return replace(plan, tracks=(*plan.tracks[:n], first, second, *plan.tracks[n + 1 :]))


def a_scratch_more(rng: Rng, plan: Plan) -> Plan:
    """A kernel destroys two bytes of some memory that the plan did not grant it."""
    memory = plan.memories[int(rng.integers(len(plan.memories)))]
    top = max((b.extent[1] // 2 for b in plan.buffers if b.memory == memory.name), default=0)
    place = packed((2,), 8, 2 * int(rng.integers(max(1, min(memory.bytes, top + 4) - 1))))
    new = Buffer("new", "", memory.name, (2,), 8, place, "scratch")
    tracks, computes = plan.tracks, instances(plan.tracks, Compute)
    if computes:
        path = (*computes[int(rng.integers(len(computes)))], "scratch")
        tracks = rebuilt(tracks, path, (*at(tracks, path), "new"))
    return replace(plan, buffers=(*plan.buffers, new), tracks=tracks)


def places_exchanged(rng: Rng, plan: Plan) -> Plan:
    """Two buffers, each from where the other one began."""
    a, b = (int(n) for n in rng.choice(len(plan.buffers), 2, replace=False))
    found = list(plan.buffers)
    for this, that in ((a, b), (b, a)):
        buffer, other = plan.buffers[this], plan.buffers[that]
        place = packed(buffer.shape, buffer.bits, other.extent[0])
        found[this] = replace(buffer, memory=other.memory, map=place)
    return replace(plan, buffers=tuple(found))


def a_twin(rng: Rng, plan: Plan) -> Plan:
    """The same cells under another name, maybe of another step, width or role, for one slice."""
    old = plan.buffers[int(rng.integers(len(plan.buffers)))]
    changes: list[dict[str, Any]] = [{"step": 3}, {"bits": 16}, {"role": "accumulator"}, {}]
    twin = replace(old, name="twin", **changes[int(rng.integers(len(changes)))])
    tracks = plan.tracks
    used = [path for path in instances(tracks, Slice) if at(tracks, path).buffer == old.name]
    if used:
        path = (*used[int(rng.integers(len(used)))], "buffer")
        tracks = rebuilt(tracks, path, "twin")
    return replace(plan, buffers=(*plan.buffers, twin), tracks=tracks)


MISTAKES: tuple[Callable[[Rng, Plan], Plan], ...] = (
    a_step_in_a_loop,
    an_endless_loop,
    a_loop_left_out,
    a_step_on_another_track,
    a_track_in_two,
    a_scratch_more,
    places_exchanged,
    a_twin,
)
