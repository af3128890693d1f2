"""Sound plans that tests spoil: the fixtures, and a small plan of every strategy there is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import yaml

from pipeline import config
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import IntArray
from pipeline.hardware import Card, Hardware
from pipeline.home import ROOT
from pipeline.plan.calibrate import calibrated
from pipeline.plan.fit import roomy
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.ordinary import Ordinary
from tests.plan.fixtures import FIXTURES, double_buffer
from tests.plan.mutations import nodes
from tests.several import recalling
from tests.strategies import chains
from tests.strategies.nets import Net
from tests.strategies.swap.nets import Chain

STRATEGIES = ROOT / "conf" / "strategy"

SETTINGS: dict[str, tuple[Any, ...]] = {
    "layout": ("slots", "contiguous"),
    "preserve_input": (False, True),
    "accumulator_bits": (32, 8),
    "scheduler": ("best", "swapnn"),
    "frames": (1, 2),
    "buffer_bytes": (64,),
    "rows": (2,),
    "columns": (2,),
}
"""Values tried of every strategy whose option has the key; other keys are as the option says."""


@dataclass(frozen=True)
class Subject:
    """A sound plan, and inputs to try it on: shape (2, frames of the plan, *input's shape)."""

    name: str
    plan: Plan
    graph: Graph
    hardware: Hardware
    inputs: IntArray


def subject(
    name: str, plan: Plan, graph: Graph, hardware: Hardware, rng: np.random.Generator
) -> Subject:
    kind = graph.tensors[graph.input].dtype
    shape = (2, plan.frames, *graph.tensors[graph.input].shape)
    inputs = rng.integers(kind.minimum, kind.maximum, shape, endpoint=True)
    return Subject(name, plan, graph, hardware, inputs)


@cache
def subjects() -> dict[str, Subject]:
    """All, by name: of a strategy ``option key=value …``."""
    rng = np.random.default_rng(5)
    makers = {**FIXTURES, "larger": partial(double_buffer, tiles=12), "recalled": recalled}
    found = [subject(name, *make(rng), chains.board(), rng) for name, make in makers.items()]
    for option in sorted(STRATEGIES.glob("*.yaml")):
        for name, *made in plans(yaml.safe_load(option.read_text())):
            if all(made[0] != other.plan for other in found):
                found.append(subject(name, *made, rng))
    return {each.name: each for each in found}


def plans(option: dict[str, Any]) -> Iterator[tuple[str, Plan, Graph, Hardware]]:
    """Yield plans of an option: for each of its ``SETTINGS`` the one that says most."""
    keys = [key for key in SETTINGS if key in option]
    for values in product(*(SETTINGS[key] for key in keys)):
        chosen = dict(zip(keys, values, strict=True))
        made = [(attempt({**option, **chosen}, *make()), *make()) for make in NETWORKS]
        found = [(plan, *rest) for plan, *rest in made if plan]
        if found:
            varied = [f"{key}={value}" for key, value in chosen.items() if len(SETTINGS[key]) > 1]
            yield " ".join([option["name"], *varied]), *max(found, key=lambda each: says(each[0]))


def attempt(option: dict[str, Any], graph: Graph, hardware: Hardware) -> Plan | None:
    try:
        plan = config.instantiate(option).plan(graph, hardware)
    except ThimbleError:
        return None
    kind, shape = graph.tensors[graph.input].dtype, graph.tensors[graph.input].shape
    frames = np.random.default_rng(0).integers(kind.minimum, kind.maximum + 1, (4, *shape))
    return roomy(calibrated(plan, graph, frames))


def said(plan: Plan) -> set[str]:
    """Classes of the vocabulary that a plan uses, and fields that do not hold their defaults."""
    found = [node for _, node in nodes(plan)]
    return {type(node).__name__ for node in found} | {
        f"{type(node).__name__}.{field.name}"
        for node in found
        for field in fields(node)
        if getattr(node, field.name) != field.default
    }


def says(plan: Plan) -> tuple[int, int]:
    """Count the classes, and the fields, that a plan uses."""
    found = said(plan)
    return sum("." not in each for each in found), len(found)


def nibbles() -> tuple[Graph, Hardware]:
    """4 bits: 4x4x1 -> 2x2x2 -> 2, the input streaming in."""
    net = chains.Chain((4, 4, 1))
    return net.conv("conv", 2).dense("logits", 2).graph(), chains.board()


def with_card(sram_bytes: int) -> Hardware:
    """No stream, a card of 4-byte blocks, and a core whose kernels need scratch."""
    card = Card(bytes=1 << 12, block_bytes=4, read_bytes_per_s=1e6, write_bytes_per_s=1e6)
    plain = chains.board(streams=False, weights_in="flash", sram_bytes=sram_bytes)
    return replace(plain, card=card, core="cortex_m", cpu="cortex-m4")


def chain() -> tuple[Graph, Hardware]:
    """8 bits: 4x4x1 -> 2x2x2 -> 1x1x2 -> 3, in 96 bytes and a card."""
    net = Chain("chain", (4, 4, 1)).conv(2, 3).maximum(2, 2).dense(3)
    return net.graph(np.random.default_rng(0)), with_card(96)


def image() -> tuple[Graph, Hardware]:
    """8 bits: an image whose first layers go patch by patch, with a residual sum."""
    net = Net((5, 5, 1))
    x = net.conv("input", 2, 3, 2)
    net.dense(net.average(net.add(net.conv(x, 2, 3), x)), 2)
    return net.graph(), with_card(1 << 10)


def recalled(rng: np.random.Generator) -> tuple[Plan, Graph]:
    """8 bits: an image's sum with what was made of it in the call before."""
    graph = recalling(image()[0], rng)
    return roomy(Ordinary().plan(graph, chains.board())), graph


def narrow() -> tuple[Graph, Hardware]:
    """Twelve channels, some at a time, whose sums fit 4 bits: weights of -1 … 1, inputs 0 or 1."""
    net = Net((2, 2, 2))
    net.conv(net.conv("input", 12), 2)
    first, last = net.operators
    operators = (
        replace(first, clip=(0, 1), requant=FixedPoint.of([2.0**-6])),  # type: ignore[call-arg]
        replace(last, requant=FixedPoint.of([8.0])),  # type: ignore[call-arg]
    )
    rng = np.random.default_rng(1)
    small = {n: rng.integers(-1, 2, v.shape) for n, v in net.constants.items()}
    return replace(net.graph(), constants=small, operators=operators), with_card(1 << 10)


NETWORKS: tuple[Callable[[], tuple[Graph, Hardware]], ...] = (nibbles, chain, image, narrow)
