"""Random small plans over random small graphs: made right, with a slip here and there in some."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Memory
from pipeline.plan.vocabulary import KEPT, Affine, Buffer, Plan, PlanError, Slice
from tests.plan.random_plans_draft import Action, Draft, Task
from tests.plan.random_plans_graphs import small_graph
from tests.plan.random_plans_over import extent
from tests.plan.random_plans_places import placed
from tests.plan.random_plans_steps import scheduled
from tests.plan.random_plans_tracks import dealt, in_a_row

KINDS = {"sram": "ram", "other": "ram", "card": "block", "stream": "stream", "flash": "rom"}


@dataclass(frozen=True)
class Case:
    """``parts`` are those of a plan, which refuses some when it is made."""

    parts: dict[str, Any]
    graph: Graph
    features: frozenset[str]

    @property
    def loose(self) -> Plan:
        """Something with a plan's attributes that nobody has looked at."""
        return cast(Plan, SimpleNamespace(**self.parts))

    def plan(self) -> Plan:
        """
        Raises:
            PlanError: when the parts do not make a plan.
        """
        return Plan(**self.parts)


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    while True:
        try:
            return _case(rng)
        except PlanError:  # a buffer that cannot even be written down
            continue


def _case(rng: np.random.Generator) -> Case:
    graph = small_graph(rng)
    frames = int(rng.choice([2, 3])) if rng.random() < 0.2 else 1
    draft = Draft(rng, graph, float(rng.choice([0.0, 1.0, 1.0, 2.0])), frames)
    scheduled(draft)
    row = in_a_row(draft)
    output = draft.chains[graph.output][-1]
    placed(draft, row, output)
    if draft.slip(0.2 if frames > 1 else 0.02):
        task = draft.pick(*row)
        task.step = replace(task.step, frame=draft.pick(*range(frames), frames))
    _aliased(draft, row)
    draft.buffers = {name: _slipped(draft, b) for name, b in draft.buffers.items()}
    parts: dict[str, Any] = {
        "graph": "random",
        "strategy": "random",
        "memories": _memories(draft),
        "buffers": tuple(draft.buffers.values()),
        "resident": tuple(name for name in draft.resident if not draft.slip(0.01)),
        "output": draft.pick(*draft.buffers) if draft.slip(0.02) else output,
        "notes": ((KEPT, draft.chance(0.9)),) if draft.chance(0.1) else (),
        "frames": frames,
    }
    parts["tracks"] = dealt(draft, row, cast(Plan, SimpleNamespace(**parts)))
    draft.features |= {f"{b.bits} bits" for b in draft.buffers.values()}
    draft.features |= {KINDS[b.memory] for b in draft.buffers.values()}
    draft.features |= {name for name, promised in parts["notes"] if promised}
    return Case(parts, graph, frozenset(draft.features))


def _aliased(draft: Draft, row: list[Task]) -> None:
    """Another name for a buffer, in some of the slices; a slip gives it other properties."""
    if not draft.chance(0.25):
        return
    sums = [b.name for b in draft.buffers.values() if b.role == "accumulator"]
    names = [b.name for b in draft.buffers.values() if b.role != "scratch"]
    name = draft.pick(*(sums if sums and draft.chance(0.6) else names))
    twin = replace(draft.buffers[name], name="twin")
    if draft.slip(0.5):
        match draft.pick("bits", "step") if name in sums else draft.pick("role", "base", "copies"):
            case "bits":
                twin = replace(twin, bits=draft.pick(4, 8, 16, 32))
            case "step":
                twin = replace(twin, step=draft.pick(1, 2, 9))
            case "role":
                twin = replace(twin, role=draft.pick("activation", "constant"))
            case "copies":
                twin = replace(twin, copies=draft.pick(1, 2, 3))
            case "base" if isinstance(twin.map, Affine):
                twin = replace(twin, map=replace(twin.map, base=max(0, twin.map.base - 2)))
    draft.buffers["twin"] = twin
    if name in draft.resident and draft.chance(0.2):
        draft.resident.append("twin")
    for task in row:
        task.step = _renamed(draft, task.step, name)
    draft.features.add("alias")


def _renamed(draft: Draft, step: Action, name: str) -> Action:
    """``step`` with ``twin`` in place of ``name`` in half of its slices."""

    def renamed(piece: Slice) -> Slice:
        return (
            replace(piece, buffer="twin") if piece.buffer == name and draft.chance(0.5) else piece
        )

    changed: dict[str, Any] = {}
    for field in fields(step):
        found = getattr(step, field.name)
        if isinstance(found, Slice):
            changed[field.name] = renamed(found)
        elif field.name == "ins":
            changed["ins"] = tuple(map(renamed, found))
    return replace(step, **changed)


def _slipped(draft: Draft, buffer: Buffer) -> Buffer:
    if not draft.slip(0.012):
        return buffer
    match draft.pick("bits", "role", "memory", "tensor"):
        case "bits":
            return replace(buffer, bits=draft.pick(4, 8, 16, 32))
        case "role":
            roles = ("activation", "accumulator", "constant", "scratch")
            return replace(buffer, role=draft.pick(*roles))
        case "memory":
            return replace(buffer, memory=draft.pick(*KINDS))
    return replace(buffer, tensor=draft.pick(*draft.graph.tensors))


def _memories(draft: Draft) -> tuple[Memory, ...]:
    """Each just large enough, or larger."""
    found = []
    for name, kind in KINDS.items():
        tops = [extent(b)[1] for b in draft.buffers.values() if b.memory == name]
        size = max(1, -(-max(tops, default=0) // 2)) + draft.pick(0, 0, 3)
        if size > 1:
            size -= draft.slip(0.02)
        granule = 1
        if draft.chance({"block": 0.5, "ram": 0.2}.get(kind, 0)):
            granule = draft.pick(2, 4, 8)
            draft.features.add("granule")
        found.append(Memory(name, size, kind, granule))  # type: ignore[arg-type]
    return tuple(found)
