"""How each field of the vocabulary is changed, and values that no field may have.

``CHANGES`` has an entry for every field of every class that a plan is made of; a test fails where
one is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Memory
from pipeline.plan.maps import Map
from pipeline.plan.vocabulary import (
    Affine,
    Blocks,
    Buffer,
    Clear,
    Compute,
    Finish,
    Lin,
    Loop,
    Move,
    Plan,
    Rows,
    Signal,
    Slice,
    Table,
    Track,
    Wait,
    packed,
)

Rng = np.random.Generator

ROLES = ("activation", "accumulator", "constant", "scratch", "aside")
KINDS = ("ram", "rom", "stream", "block")


@dataclass(frozen=True)
class Site:
    """Where a change is made: in an instance ``node`` of a class somewhere in ``plan``."""

    rng: Rng
    plan: Plan
    graph: Graph
    node: Any

    def pick(self, items: Any) -> Any:
        return list(items)[int(self.rng.integers(len(items)))] if items else None

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)


Change = Callable[[Site, Any], Any]
"""From the value that a field has to one that it might have had by mistake."""


def near(site: Site, number: int) -> int:
    return number + int(site.pick((-4, -2, -1, 1, 2, 4)))


def index(site: Site, place: Any) -> Any:
    """A number or a ``Lin``, nearby; or one made of the other."""
    if isinstance(place, Lin):
        return place.const if site.chance(0.15) else replace(place, const=near(site, place.const))
    return Lin(place, ((variable(site), 1),)) if site.chance(0.15) else near(site, place)


def one(change: Change) -> Change:
    """Of a tuple one item changed; seldom one more, or one less."""

    def apply(site: Site, items: tuple[Any, ...]) -> tuple[Any, ...]:
        if not items:
            return (change(site, 1),) if change is not reordered else items
        n = int(site.rng.integers(len(items)))
        if site.chance(0.1):
            return (*items[:n], *items[n + 1 :])
        if site.chance(0.1):
            return (*items[:n], items[n], *items[n:])
        return (*items[:n], change(site, items[n]), *items[n + 1 :])

    return apply


def reordered(site: Site, items: tuple[Any, ...]) -> tuple[Any, ...]:
    """One item left out, twice there, or in another's place."""
    if not items:
        return items
    n, m = (int(site.rng.integers(len(items))) for _ in range(2))
    match site.pick(("less", "more", "swapped", "swapped")):
        case "less":
            return (*items[:n], *items[n + 1 :])
        case "more":
            return (*items[:m], items[n], *items[m:])
    changed = list(items)
    changed[n], changed[m] = items[m], items[n]
    return tuple(changed)


def any_of(names: Callable[[Site], Any]) -> Change:
    """Another one of those names; seldom one that there is not."""

    def apply(site: Site, name: Any) -> Any:
        others = sorted({each for each in names(site) if each != name})
        return "nobody" if not others or site.chance(0.1) else site.pick(others)

    return apply


def variable(site: Site) -> str:
    return str(any_of(variables)(site, ""))


def buffers(site: Site) -> set[str]:
    return {buffer.name for buffer in site.plan.buffers}


def tensors(site: Site) -> set[str]:
    return {*site.graph.tensors, ""}


def memories(site: Site) -> set[str]:
    return {memory.name for memory in site.plan.memories}


def operators(site: Site) -> set[str]:
    return {op.name for op in site.graph.operators}


def tracks(site: Site) -> set[str]:
    return {track.name for track in site.plan.tracks}


def counters(site: Site) -> set[str]:
    return {node.counter for node in inside(site.plan.tracks, Signal, Wait)}


def variables(site: Site) -> set[str]:
    return {node.var for node in inside(site.plan.tracks, Loop)}


def inside(steps: Any, *classes: type) -> list[Any]:
    """The instances of ``classes`` among ``steps``, tracks or loops, and in their bodies."""
    found = []
    for step in steps:
        if isinstance(step, classes):
            found.append(step)
        if isinstance(step, Loop | Track):
            found += inside(step.body if isinstance(step, Loop) else step.steps, *classes)
    return found


def slices(site: Site, pieces: tuple[Slice, ...]) -> tuple[Slice, ...]:
    return one(piece)(site, pieces) if pieces and site.chance(0.5) else reordered(site, pieces)


def piece(site: Site, old: Slice) -> Slice:
    """Another slice of the plan, or all of some buffer."""
    others = [s for step in inside(site.plan.tracks, Compute) for s in (step.out, *step.ins)]
    if others and site.chance(0.5):
        return site.pick(others)
    buffer = site.pick(site.plan.buffers)
    return Slice(buffer.name, (0,) * len(buffer.shape), buffer.shape)


def scratch(site: Site, names: tuple[str, ...]) -> tuple[str, ...]:
    """Any buffer's name; those of scratch are few."""
    return (
        reordered(site, names) if names and site.chance(0.3) else (*names, site.pick(buffers(site)))
    )


def order(site: Site, origins: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    if not origins:
        return tuple((n, *(0,) * (len(site.node.out.lo) - 1)) for n in (1, 0))
    return one(one(near))(site, origins) if site.chance(0.2) else reordered(site, origins)


def unit(site: Site, extents: tuple[int, ...]) -> tuple[int, ...]:
    if not extents or site.chance(0.2):
        return () if extents else site.node.out.size
    return one(near)(site, extents)


def wrap(site: Site, rings: tuple[int, ...]) -> tuple[int, ...]:
    return one(near)(site, rings or (0,) * len(site.node.strides))


def shape(site: Site, extents: tuple[int, ...]) -> tuple[int, ...]:
    return extents[::-1] if site.chance(0.3) else one(near)(site, extents)


def coefficients(site: Site, pairs: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    if not pairs or site.chance(0.2):
        return reordered(site, pairs) if pairs else ((variable(site), 1),)
    (name, factor), *rest = pairs
    if site.chance(0.3):
        return ((any_of(variables)(site, name), factor), *rest)
    return ((name, factor + int(site.pick((-1, 1)))), *rest)


def place(site: Site, map_: Map) -> Map:
    """Where another buffer lies, or the same cells in another form."""
    if site.chance(0.5):
        return site.pick(site.plan.buffers).map
    node = site.node
    if isinstance(map_, Affine) and not any(map_.wrap) and site.chance(0.3):
        cells = tuple(map_.base + n * map_.strides[0] for n in range(node.shape[0]))
        return Rows(cells, map_.strides[1:])
    if isinstance(map_, Affine) and site.chance(0.5):
        return Table(tuple(int(cell) for cell in node.addresses(node.box).reshape(-1)))
    return packed(node.shape, node.bits, node.extent[0])


def part(site: Site, held: Any) -> Any:
    """Other indices along an axis."""
    if not held:
        return ((0, int(site.pick((1, 2, 3)))),) * int(site.pick((1, 2, 3)))
    return one(lambda site, ends: (near(site, ends[0]), near(site, ends[1])))(site, held)


def more_buffers(site: Site, those: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    if site.chance(0.5):
        return reordered(site, those)
    return (*those, replace(site.pick(those), name=f"another {site.pick(those).name}"))


def more_residents(site: Site, names: tuple[str, ...]) -> tuple[str, ...]:
    return reordered(site, names) if site.chance(0.5) else (*names, site.pick(buffers(site)))


def size(site: Site, number: int) -> int:
    return site.pick((number // 2, 2 * number, number - 1, number + 1, 0))


def either(*values: Any) -> Change:
    return lambda site, old: site.pick([value for value in values if value != old])


STEP: dict[str, Change] = {"op": any_of(operators), "frame": index}

CHANGES: dict[type, dict[str, Change]] = {
    Lin: {"const": near, "coef": coefficients},
    Affine: {"base": near, "strides": one(near), "wrap": wrap, "held": part},
    Rows: {"cells": one(near), "strides": one(near)},
    Blocks: {"cells": one(near), "pixels": near, "width": either(1, 2, 4, 8)},
    Table: {"cells": one(near)},
    Buffer: {
        "name": any_of(buffers),
        "tensor": any_of(tensors),
        "memory": any_of(memories),
        "shape": shape,
        "bits": either(4, 8, 16, 32),
        "map": place,
        "role": either(*ROLES),
        "step": either(0, 1, 2, 3, 5, 64),
        "copies": either(0, 1, 2, 3),
        "copy_stride": near,
    },
    Slice: {"buffer": any_of(buffers), "lo": one(index), "size": one(near), "copy": index},
    Compute: {
        **STEP,
        "out": piece,
        "ins": slices,
        "unit": unit,
        "order": order,
        "partial": either(False, True),
        "scratch": scratch,
        "kernel": either("", "none"),
        "delay": either(-1, 0, 1, 2),
    },
    Clear: {**STEP, "acc": piece},
    Finish: {**STEP, "acc": piece, "out": piece, "ins": slices, "unit": unit},
    Move: {"src": piece, "dst": piece, "frame": index},
    Signal: {"counter": any_of(counters)},
    Wait: {"counter": any_of(counters), "at_least": index},
    Loop: {"var": any_of(variables), "count": near, "body": reordered},
    Track: {"name": any_of(tracks), "steps": reordered},
    Plan: {
        "graph": either("net", "chain", "another"),
        "strategy": either("another"),
        "memories": reordered,
        "buffers": more_buffers,
        "tracks": reordered,
        "resident": more_residents,
        "output": any_of(buffers),
        "notes": either((("input_kept", True),), (("bound_us", 1e9),), ()),
        "frames": either(0, 1, 2, 3),
    },
    Memory: {
        "name": any_of(memories),
        "bytes": size,
        "kind": either(*KINDS),
        "granule_bytes": either(0, 1, 2, 4, 64, 512),
    },
}

WRONG: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    -(1 << 40),
    (1 << 31) - 1,
    1 << 31,
    10**12,
    1 << 70,
    1.0,
    2.5,
    -0.0,
    nan,
    inf,
    "",
    "x",
    "1",
    (),
    (None,),
    (0,),
    ((),),
    [],
    {},
    Lin(1, (("x", 1),)),
    Lin(1 << 70),
    Signal("x"),
)


def wrong(site: Site, value: Any) -> Any:
    """What no field holds, in place of ``value`` or somewhere within."""
    if isinstance(value, tuple) and value and site.chance(0.6):
        n = int(site.rng.integers(len(value)))
        return (*value[:n], wrong(site, value[n]), *value[n + 1 :])
    return site.pick(WRONG)
