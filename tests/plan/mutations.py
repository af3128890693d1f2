"""Plans with a mistake, seldom with two: what some field holds, a step elsewhere, a buffer more.

A mistake is likely to make another plan that is well formed: a name is changed for one that there
is, a number for one nearby, an object for another one of its class; now and then for what no field
may hold.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from math import inf, nan
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.plan import vocabulary as v

Rng = np.random.Generator
Path = tuple[str | int, ...]


# --- trees of dataclasses and tuples


def nodes(root: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The dataclasses in a tree, and where they are."""
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


@dataclass(frozen=True)
class Dice:
    rng: Rng

    def below(self, stop: int) -> int:
        return int(self.rng.integers(stop))

    def pick(self, *items: Any) -> Any:
        return items[self.below(len(items))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def shuffled(self, items: list[Any]) -> list[Any]:
        return [items[n] for n in self.rng.permutation(len(items))]


@dataclass(frozen=True)
class Site(Dice):
    """Place of a change: in ``node``, somewhere in ``plan``."""

    plan: v.Plan
    graph: Graph
    node: Any = None

    def all(self, cls: Any) -> list[Path]:
        """List where there are instances of ``cls``."""
        return [path for path, node in nodes(self.plan) if isinstance(node, cls)]

    def any(self, cls: type) -> Path:
        return self.pick(*self.all(cls))  # type: ignore[no-any-return]

    def said(self, *names: str) -> list[str]:
        """List what fields of these names hold."""
        found = [(node, field.name) for _, node in nodes(self.plan) for field in fields(node)]
        return [getattr(node, name) for node, name in found if name in names]


# --- the mistakes of a field

NAMES: dict[str, Callable[[Site], list[str]]] = {
    **dict.fromkeys(("buffer", "outputs", "resident", "scratch"), lambda site: [*site.plan.buffer]),
    "tensor": lambda site: [*site.graph.tensors, ""],
    "memory": lambda site: [*site.plan.memory],
    "op": lambda site: [op.name for op in site.graph.operators],
    "role": lambda _: ["activation", "accumulator", "constant", "scratch", "aside"],
    "kind": lambda _: ["ram", "rom", "stream", "frame", "block"],
    "counter": lambda site: site.said("counter"),
    **dict.fromkeys(("var", "coef"), lambda site: site.said("var")),
}
"""By field, the names that are likely there."""

NUMBERS = {
    "bits": (4, 8, 16, 32),
    "step": (0, 1, 2, 3, 5, 64),
    **dict.fromkeys(("copies", "frames", "delay"), (0, 1, 2, 3)),
    "granule_bytes": (1, 2, 4, 64, 512),
}
POSITIONS = ("lo", "copy", "frame", "at_least")
"""Fields that may count with loops."""

WRONG: tuple[Any, ...] = (
    None, True, 0, -1, -(1 << 40), (1 << 31) - 1, 1 << 31, 10**12, 1 << 70, 1.0, 2.5, nan, inf,
    -0.0, "", "x", "1", (), (None,), (0,), ((),), [], {}, v.Lin(1, (("x", 1),)), v.Lin(1 << 70),
    v.Signal("x"),
)  # fmt: skip


def changed(site: Site, name: str, old: Any) -> Any:
    """Return what field ``name`` might hold by mistake for ``old`` or for something in it."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int | float):
        if name in POSITIONS and site.chance(0.15):
            return v.Lin(old, ((site.pick("", *site.said("var")), 1),))
        if name in NUMBERS and site.chance(0.8):
            return site.pick(*NUMBERS[name])
        return site.pick(*(old + n for n in (-4, -2, -1, 1, 2, 4) * 2), old // 2, 2 * old, 0)
    if isinstance(old, str):
        return site.pick("nobody", *NAMES[name](site) * 5) if name in NAMES else f"another {old}"
    if isinstance(old, tuple):
        return _items(site, name, old) if old else _something(site, name)
    if name == "map" and site.chance(0.5):  # the same cells in another form, or packed
        buffer = site.node
        cells = (int(cell) for cell in buffer.addresses(buffer.box).reshape(-1))
        return site.pick(
            v.Table(tuple(cells)), v.packed(buffer.shape, buffer.bits, buffer.extent[0])
        )
    if isinstance(old, v.Lin) and site.chance(0.5):
        return old.const
    found = at(site.plan, site.any(v.Buffer if name == "map" else type(old)))
    return found.map if name == "map" else found


def _items(site: Site, name: str, old: tuple[Any, ...]) -> tuple[Any, ...]:
    """One item changed, left out, twice there, or in another's place."""
    n, m = (site.below(len(old)) for _ in range(2))
    match site.pick("item", "item", "item", "less", "more", "swapped", "swapped"):
        case "less":
            return (*old[:n], *old[n + 1 :])
        case "more":
            return (*old[:m], old[n], *old[m:])
        case "swapped" if n != m:
            return tuple(old[{n: m, m: n}.get(k, k)] for k in range(len(old)))
    return (*old[:n], changed(site, name, old[n]), *old[n + 1 :])


def _something(site: Site, name: str) -> Any:
    """In place of nothing."""
    rank = len(getattr(site.node, "strides", ())) or len(getattr(site.node, "lo", (0, 0)))
    return {
        "unit": lambda: site.node.out.size,
        "order": lambda: tuple((n, *(0,) * (len(site.node.out.lo) - 1)) for n in (1, 0)),
        "wrap": lambda: tuple(site.pick(0, 0, 1, 2, 3) for _ in range(rank)),
        "held": lambda: ((0, site.pick(1, 2, 3)),) * rank,
        "scratch": lambda: (site.pick(*site.plan.buffer),),
        "ins": lambda: (at(site.plan, site.any(v.Slice)),),
        "coef": lambda: ((site.pick("", *site.said("var")), 1),),
        "notes": lambda: (("input_kept", True),),
    }.get(name, lambda: (site.pick(0, 1, 2),))()


def wrong(site: Site, old: Any) -> Any:
    """Return what no field holds, in place of ``old`` or somewhere within."""
    if isinstance(old, tuple) and old and site.chance(0.6):
        n = site.below(len(old))
        return (*old[:n], wrong(site, old[n]), *old[n + 1 :])
    return site.pick(*WRONG)


def a_field(site: Site) -> v.Plan:
    """Change a field, of a class as often as of any other."""
    classes = sorted({type(node).__name__ for _, node in nodes(site.plan)})
    cls = site.pick(*classes)
    path = site.pick(*(path for path, node in nodes(site.plan) if type(node).__name__ == cls))
    site = replace(site, node=at(site.plan, path))
    name = site.pick(*(field.name for field in fields(site.node)))
    old = getattr(site.node, name)
    new = wrong(site, old) if site.chance(0.1) else changed(site, name, old)
    return rebuilt(site.plan, (*path, name), new)  # type: ignore[no-any-return]


# --- the mistakes of no single field


def bodies(tracks: tuple[v.Track, ...]) -> list[Path]:
    """List where there are steps in a row."""
    found = [(path, node) for path, node in nodes(tracks) if isinstance(node, v.Track | v.Loop)]
    return [(*path, "body" if isinstance(node, v.Loop) else "steps") for path, node in found]


def a_step_elsewhere(site: Site) -> v.Plan:
    """In another place of its body, or of another one; in a loop of its own, or out of its loop."""
    tracks = site.plan.tracks
    source = site.pick(*(path for path in bodies(tracks) if at(tracks, path)))
    steps = at(tracks, source)
    n = site.below(len(steps))
    if site.chance(0.3):
        tracks = rebuilt(tracks, (*source, n), v.Loop("new", site.pick(1, 2, 3), (steps[n],)))
    elif isinstance(steps[n], v.Loop) and site.chance(0.5):
        tracks = rebuilt(tracks, source, (*steps[:n], *steps[n].body, *steps[n + 1 :]))
    else:
        tracks = rebuilt(tracks, source, (*steps[:n], *steps[n + 1 :]))
        target = site.pick(*bodies(tracks))
        there = at(tracks, target)
        m = site.below(len(there) + 1)
        tracks = rebuilt(tracks, target, (*there[:m], steps[n], *there[m:]))
    return replace(site.plan, tracks=tracks)


def a_track_more(site: Site) -> v.Plan:
    """From some step on, what one engine did another one does at the same time."""
    n = site.below(len(site.plan.tracks))
    track = site.plan.tracks[n]
    cut = site.below(len(track.steps) + 1)
    first, second = replace(track, steps=track.steps[:cut]), v.Track("new", track.steps[cut:])
    tracks = (*site.plan.tracks[:n], first, second, *site.plan.tracks[n + 1 :])
    return replace(site.plan, tracks=tracks)


def a_scratch_more(site: Site) -> v.Plan:
    """A kernel destroys two bytes of some memory that the plan did not grant it."""
    memory = site.pick(*site.plan.memories)
    top = max((b.extent[1] // 2 for b in site.plan.buffers if b.memory == memory.name), default=0)
    place = v.packed((2,), 8, 2 * int(site.rng.integers(max(1, min(memory.bytes, top + 4) - 1))))
    new = v.Buffer("new", "", memory.name, (2,), 8, place, "scratch")
    plan = replace(site.plan, buffers=(*site.plan.buffers, new))
    if not site.all(v.Compute):
        return plan
    path = (*site.any(v.Compute), "scratch")
    return rebuilt(plan, path, (*at(plan, path), "new"))  # type: ignore[no-any-return]


def places_exchanged(site: Site) -> v.Plan:
    """Two buffers, each from where the other one began."""
    a, b = (int(n) for n in site.rng.choice(len(site.plan.buffers), 2, replace=False))
    found = list(site.plan.buffers)
    for this, that in ((a, b), (b, a)):
        buffer, other = site.plan.buffers[this], site.plan.buffers[that]
        place = v.packed(buffer.shape, buffer.bits, other.extent[0])
        found[this] = replace(buffer, memory=other.memory, map=place)
    return replace(site.plan, buffers=tuple(found))


def a_twin(site: Site) -> v.Plan:
    """The same cells under another name, maybe of another step, width or role, for one slice."""
    sums = [buffer for buffer in site.plan.buffers if buffer.role == "accumulator"]
    old = site.pick(*(sums if sums and site.chance(0.5) else site.plan.buffers))
    change = site.pick({"step": 3}, {"bits": 16}, {"role": "accumulator"}, {})
    plan = replace(site.plan, buffers=(*site.plan.buffers, replace(old, name="twin", **change)))
    used = [path for path in site.all(v.Slice) if at(plan, path).buffer == old.name]
    return rebuilt(plan, (*site.pick(*used), "buffer"), "twin") if used else plan


def other_sums(site: Site) -> v.Plan:
    """Accumulators that are narrower, or of another step."""
    change = site.pick({"bits": 4}, {"bits": 8}, {"bits": 16}, {"step": 1}, {"step": 5})
    buffers = (
        replace(buffer, **change) if buffer.role == "accumulator" else buffer
        for buffer in site.plan.buffers
    )
    return replace(site.plan, buffers=tuple(buffers))


MISTAKES: tuple[Callable[[Site], v.Plan], ...] = (
    a_step_elsewhere, a_step_elsewhere, a_track_more, a_scratch_more, places_exchanged, a_twin,
    other_sums,
)  # fmt: skip


def mutant(rng: Rng, plan: v.Plan, graph: Graph) -> v.Plan | None:
    """``plan`` with a mistake or two; None where that makes no plan."""
    for _ in range(2 if rng.random() < 0.1 else 1):
        mistake = a_field if rng.random() < 0.75 else MISTAKES[int(rng.integers(len(MISTAKES)))]
        try:
            plan = mistake(Site(rng, plan, graph))
        except v.PlanError:
            return None
    return plan
