"""Random small plans over random small graphs: sound, most of them."""

from __future__ import annotations

from math import prod
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.hardware import Memory
from pipeline.plan.vocabulary import KEPT, Plan, PlanError
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
    while True:
        graph = narrow(rng) if rng.random() < 0.3 else branched(rng)
        if max(tensor.size for tensor in graph.tensors.values()) <= MOST_ELEMENTS:
            return graph


def _image(rng: np.random.Generator) -> tuple[int, ...]:
    """Small, or a few pixels wide and long enough for rings of rows."""
    small = ((1, 1, 1), (5, 5, 3)) if rng.random() < 0.6 else ((4, 1, 1), (8, 4, 3))
    return tuple(int(n) for n in rng.integers(*small))


def narrow(rng: np.random.Generator) -> Graph:
    """A chain of convolutions, and a dense layer with 16-bit outputs; activations of 4 or 8 bits,
    shifts for requantization."""
    b = Builder(rng)
    dtype = U4 if rng.random() < 0.7 else U8
    b.tensor("x", _image(rng), dtype)
    last = "x"
    for name in ("u", "v")[: int(rng.integers(1, 3))]:
        height, width, _ = b.tensors[last].shape
        kernel = int(rng.integers(1, min(height, width, 3) + 1))
        b.conv(name, last, int(rng.integers(1, 4)), kernel, dtype, 4 if dtype == U4 else 7)
        last = name
    if rng.random() < 0.4:
        b.dense("y", last, int(rng.integers(1, 4)))
    return b.graph("x")


def branched(rng: np.random.Generator) -> Graph:
    """A few int8 operators of any kind, some of two inputs."""
    net = Net(_image(rng), rng)
    for _ in range(int(rng.choice([1, 1, 2, 2, 3]))):
        while not _grow(net, str(rng.choice(_KINDS))):
            pass  # another kind
    return net.graph()


_KINDS = ("conv", "conv", "depthwise", "dense", "mean", "max", "plus", "times", "concat", "lookup",
          "pad", "reshape", "rearrange", "softmax", "constant")  # fmt: skip


def _grow(net: Net, kind: str) -> bool:
    """Add an operator, or two; False where the last tensor does not allow it."""
    rng, last = net.rng, net.last
    shape = net.tensors[last].shape
    if kind == "dense":
        net.dense(int(rng.integers(1, 4)))
    elif kind == "lookup":
        net.lookup()
    elif kind == "softmax":
        net.softmax()
    elif kind == "plus":
        net.plus(last, last if rng.random() < 0.2 else net.lookup())
    elif kind == "times":
        net.times(net.lookup(), last)
    elif kind == "reshape":
        net.reshape((prod(shape),))
    elif len(shape) != 3:
        return False
    elif kind in ("conv", "depthwise"):
        kernel = tuple(int(rng.integers(1, min(2, n) + 1)) for n in shape[:2])
        padding = tuple(int(rng.integers(0, 2)) for _ in range(4))
        stride = tuple(int(n) for n in rng.integers(1, 3, 2))
        if kind == "conv":
            net.conv(int(rng.integers(1, 4)), kernel, padding=padding, stride=stride)
        else:
            net.depthwise(kernel, int(rng.integers(1, 3)), padding=padding, stride=stride)
    elif kind in ("mean", "max"):
        pool = net.mean if kind == "mean" else net.maximum
        kernel = tuple(int(rng.integers(1, min(3, n) + 1)) for n in shape[:2])
        padding = tuple(int(rng.integers(0, k)) for k in kernel for _ in range(2))
        pool(kernel, stride=tuple(int(n) for n in rng.integers(1, 3, 2)), padding=padding)
    elif kind == "concat":
        net.concat((last, net.like(last, last)), int(rng.integers(3)))
    elif kind == "pad":
        net.pad(tuple((int(rng.integers(0, 2)), int(rng.integers(0, 2))) for _ in range(3)))
    elif kind == "rearrange":
        axes = tuple(int(n) for n in rng.permutation(3))
        net.rearrange(tuple(shape[axes.index(a)] for a in range(3)), axes)
    elif kind == "constant":
        name = net.constant(f"k{len(net.operators)}", rng.integers(-128, 128, shape[2]), "int8")
        (net.plus if rng.random() < 0.5 else net.times)(last, name)
    return True
