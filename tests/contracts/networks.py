"""Small random networks for the contracts, and boards with room for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from hypothesis import strategies as st

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from tests.codegen.int8.support import host
from tests.codegen.support import uno
from tests.graphs import random_graph
from tests.strategies.chains import Chain
from tests.strategies.swap.nets import random_chain
from tests.targets.cortex_m import board_named

BOARDS: dict[str, Hardware] = {
    "an Uno whose input streams in": uno(),
    "an Uno": uno(weights_in="flash", streams=False),
    "a computer": host(),
    "a board with a card": board_named("stm32f746g_sd"),
}
"""One of each kind that strategies and generators tell apart."""


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    """An image, up to three convolutions or poolings of any geometry, and mostly a dense layer."""
    narrow = st.sampled_from(["uint4", "uint4", "uint4", "int8", "uint8"])
    first = draw(st.sampled_from(["uint4", "uint8", "int8"]))
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    chain = Chain((height, width, draw(st.integers(1, 3))), first, draw(st.integers(0, 99)))
    for n in range(draw(st.integers(0, 3))):
        height, width, channels = chain.tensors[chain.last].shape
        kind = draw(st.sampled_from(["conv", "conv", "conv", "any conv", "average", "maximum"]))
        kernel = (draw(st.integers(1, min(3, height))), draw(st.integers(1, min(3, width))))
        stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
        if kind == "conv":
            side = draw(st.integers(1, min(4, height, width)))
            chain.conv(f"t{n}", draw(st.integers(1, 7)), side, draw(narrow))
        elif kind == "any conv":
            groups = draw(st.sampled_from([1, channels]))
            padding = tuple(draw(st.integers(0, 2)) for _ in range(4))
            options = {"stride": stride, "padding": padding, "groups": groups}
            chain.conv(f"t{n}", groups * draw(st.integers(1, 3)), kernel, draw(narrow), **options)
        elif kind == "average":
            if draw(st.booleans()):
                stride = kernel
            chain.average(f"t{n}", 2, draw(narrow), kernel=kernel, stride=stride)
        else:
            chain.maximum(f"t{n}", kernel=kernel, stride=stride)
    if not chain.operators or draw(st.integers(0, 3)):
        chain.dense("dense", draw(st.integers(1, 5)), draw(st.sampled_from(["int16", "uint4"])))
    if draw(st.integers(0, 3)) == 0:
        chain.dense("second", draw(st.integers(1, 5)), "int8")
    return chain


WORDS = (
    *("", "", "", "sums", "scratch", "stream", "tile", "ring", "aside", "peeled", "rows", "in"),
    *("0", "1", "2", "0.0", "0.1"),
)
"""What planners call the buffers of a tensor; "": networks keep their names."""


def graphs() -> st.SearchStrategy[Graph]:
    """Chains of few bits, chains of 8 bits, and int8 networks with branches; some have tensors that
    are called as if they belonged to others."""
    seeds = st.integers(0, 100_000)
    drawn = chains().map(Chain.graph) | seeds.map(random_chain) | seeds.map(random_graph)
    return st.builds(crowded, drawn, st.sampled_from(WORDS))


def crowded(graph: Graph, word: str) -> Graph:
    """Each tensor is called as the one before it, and ``word``."""
    if not word:
        return graph
    names = {name: ".".join(["x", *[word] * n]) for n, name in enumerate(graph.tensors)}

    def renamed(value: Any) -> Any:
        if isinstance(value, str):
            return names.get(value, value)
        if isinstance(value, Mapping):
            return {names[key]: renamed(each) for key, each in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            changed = {f.name: renamed(getattr(value, f.name)) for f in fields(value) if f.init}
            return replace(value, **changed)
        return tuple(map(renamed, value)) if isinstance(value, tuple) else value

    return cast(Graph, renamed(graph))
