"""Random small plans over random small graphs: sound, most of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.graph.operators.add import Add
from pipeline.graph.operators.concat import Concat
from pipeline.hardware import Memory
from pipeline.plan.vocabulary import KEPT, Plan, PlanError
from tests.contracts.operators import MAKERS, Make
from tests.graphs import Net
from tests.plan.fixtures import U4, U8, Builder
from tests.plan.random_plans_places import placed
from tests.plan.random_plans_steps import Draft, scheduled
from tests.plan.random_plans_tracks import dealt, in_a_row

KINDS = {"sram": "ram", "other": "ram", "card": "block", "stream": "stream", "flash": "rom"}


def random_plan(seed: int) -> tuple[Plan, Graph]:
    rng = np.random.default_rng(seed)
    while True:
        try:
            return _made(rng)
        except PlanError:  # scratch where there is no room, or a card without a way
            continue


def _made(rng: np.random.Generator) -> tuple[Plan, Graph]:
    graph = small_graph(rng)
    draft = Draft(rng, graph, int(rng.choice([2, 3])) if rng.random() < 0.2 else 1)
    scheduled(draft)
    row = in_a_row(draft)
    output = draft.chains[graph.output][-1]
    placed(draft, row, output)
    parts: dict[str, Any] = {
        "graph": "random",
        "strategy": "random",
        "memories": _memories(draft),
        "buffers": tuple(draft.buffers.values()),
        "resident": tuple(draft.resident),
        "output": output,
        "notes": ((KEPT, draft.chance(0.9)),) if draft.chance(0.1) else (),
        "frames": draft.frames,
    }
    return Plan(**parts, tracks=dealt(draft, row, cast(Plan, SimpleNamespace(**parts)))), graph


def _memories(draft: Draft) -> tuple[Memory, ...]:
    """Each just large enough, or larger."""
    found = []
    for name, kind in KINDS.items():
        tops = [b.extent[1] for b in draft.buffers.values() if b.memory == name]
        size = max(1, -(-max(tops, default=0) // 2)) + draft.pick(0, 0, 3)
        coarse = draft.chance({"block": 0.5, "ram": 0.2}.get(kind, 0))
        granule = draft.pick(2, 4, 8) if coarse else 1
        found.append(Memory(name, size, kind, granule))  # type: ignore[arg-type]
    return tuple(found)


# --- graphs of one to four operators on a few elements

MOST_ELEMENTS = 72
"""Of any tensor."""


def small_graph(rng: np.random.Generator) -> Graph:
    maker = list(MAKERS.values())[int(rng.integers(len(MAKERS)))]
    chained = rng.random() < 0.5
    while True:
        graph = chain(rng) if chained else one_operator(rng, maker)
        if max(tensor.size for tensor in graph.tensors.values()) <= MOST_ELEMENTS:
            return graph


def chain(rng: np.random.Generator) -> Graph:
    """Convolutions, and a dense layer with 16-bit outputs; activations of 4 or 8 bits, shifts for
    requantization. The image is small, or a few pixels wide and long enough for rings of rows."""
    b = Builder(rng)
    dtype = U4 if rng.random() < 0.6 else U8
    small = ((1, 1, 1), (5, 5, 3)) if rng.random() < 0.6 else ((4, 1, 1), (8, 4, 3))
    b.tensor("x", tuple(int(n) for n in rng.integers(*small)), dtype)
    last = "x"
    for name in ("u", "v", "w")[: int(rng.integers(1, 4))]:
        height, width, _ = b.tensors[last].shape
        kernel = int(rng.integers(1, min(height, width, 3) + 1))
        b.conv(name, last, int(rng.integers(1, 4)), kernel, dtype, 4 if dtype == U4 else 7)
        last = name
    if rng.random() < 0.4:
        b.dense("y", last, int(rng.integers(1, 4)))
    return b.graph("x")


def one_operator(rng: np.random.Generator, make: Make) -> Graph:
    """Of int8, any that there is; where it reads two tensors, the second is made of the first."""
    op, tensors, values = make(rng)
    if len(op.inputs) == 1:
        constants = {name: value for name, value in values.items() if name != op.inputs[0]}
        return Graph("one", tensors, (op,), constants, op.inputs[0], op.output)
    net = Net(tensors[op.inputs[0]].shape, rng)
    one, other = net.image, net.like(net.image, net.image)
    if isinstance(op, Concat):
        net.concat((one, other), int(rng.integers(len(net.tensors[one].shape))))
    else:
        (net.plus if isinstance(op, Add) else net.times)(other, one)
    return net.graph()
