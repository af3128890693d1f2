"""In-place plans of chains, in every layout, as C: tables, peels, permutations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.vocabulary import Compute, Move, Plan, Table, Track, packed, whole
from pipeline.strategies.base import LAYOUTS, Layout, Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.replace import Replace
from pipeline.strategies.single_transpose import SingleTranspose
from tests.codegen.int8.plans import Hand
from tests.codegen.support import Native, agrees, checked, frames, host
from tests.graphs import Net
from tests.plan.fixtures import rows_anywhere
from tests.tiers import quick

STRATEGIES = (Herringbone, Replace, SingleTranspose)
every = pytest.mark.parametrize(
    "strategy", [kind(layout=layout) for kind in STRATEGIES for layout in LAYOUTS], ids=str
)


def chain(seed: int) -> Graph:
    """Convolutions that peel and others, pooling, a classifier."""
    rng = np.random.default_rng(seed)
    side, depth = int(rng.integers(7, 11)), int(rng.integers(1, 4))
    net = Net((side, int(rng.integers(7, 11)), depth), rng, name="chain")
    none = (0, 0, 0, 0)
    net.conv(depth + int(rng.integers(1, 4)), (3, 3), padding=none)
    if seed % 3 == 0:
        net.depthwise((3, 3))
    if seed % 2:
        net.maximum((2, 2), stride=(1, 1))
    net.conv(depth + int(rng.integers(4, 7)), (2, 2) if seed % 4 == 1 else (3, 3), padding=none)
    if seed % 3 == 1:
        net.conv(5, (3, 3), stride=(2, 1), padding=(1, 1, 1, 1))
    net.dense(int(rng.integers(3, 7)))
    if seed % 4 == 2:
        net.dense(4)
    return net.graph()


@every
@pytest.mark.parametrize("seed", quick(1, range(6), ci=1))
def test_a_chain(strategy: Strategy, seed: int, tmp_path: Path) -> None:
    graph = chain(seed)
    plan = strategy.plan(graph, host())
    checked(tmp_path, graph, plan, given=frames(graph, 4, seed), interpreted=True)


@pytest.mark.parametrize("layout", quick(1, LAYOUTS))
@pytest.mark.parametrize("kind", ["softmax", "lookup", "both"])
def test_what_follows_the_last_layer(kind: str, layout: Layout, tmp_path: Path) -> None:
    """It lies beside what it is made of: above all, where that takes all of the arena."""
    net = Net((6, 6, 2), np.random.default_rng(2), name="followed")
    net.conv(5, (3, 3))
    if kind != "lookup":
        net.dense(6)
    for name in ("lookup", "softmax"):
        if kind in (name, "both"):
            getattr(net, name)()
    graph = net.graph()
    plan = Herringbone(layout=layout).plan(graph, host())
    checked(tmp_path, graph, plan, interpreted=True)


def test_what_is_between_layers_lies_over_its_input(tmp_path: Path) -> None:
    """Not in one piece, which is for chains of layers."""
    net = Net((6, 6, 2), np.random.default_rng(2), name="between")
    net.conv(5, (3, 3))
    net.lookup()
    net.dense(6)
    graph = net.graph()
    with pytest.raises(ThimbleError, match=r"cannot plan lookup\d+ \(Lookup\).*chains of conv"):
        Herringbone(layout="contiguous").plan(graph, host())
    plan = Herringbone().plan(graph, host())
    assert plan.buffer["conv0"].map == plan.buffer["lookup1"].map
    checked(tmp_path, graph, plan)


def test_peels_of_one_operator_share_its_functions() -> None:
    """Strides that differ from peel to peel are arguments."""
    graph, strategy = chain(3), Herringbone(layout="contiguous")
    text = generate(graph, strategy.plan(graph, host()), host(), {})["model.c"]
    functions = [line for line in text.splitlines() if line.startswith("static NN_KERNEL")]
    calls = [line for line in text.splitlines() if line.startswith("    nn_conv")]
    assert len(functions) < 10 < len(calls)
    assert "nn_permute_" in text and "nn_orders[" in text


def test_rows_anywhere_then_side_by_side(tmp_path: Path) -> None:
    """Who reads the result wants it in one piece: the plan moves it there, or else the program."""
    plan, graph = rows_anywhere(np.random.default_rng(0))
    assert agrees(Native(tmp_path / "torn", graph, plan))
    rows = plan.buffer["y"]
    ready = replace(rows, name="ready", map=packed(rows.shape, 8, 2))
    steps = (*plan.tracks[0].steps, Move(whole(rows), whole(ready)))
    moved = replace(
        plan, buffers=(*plan.buffers, ready), tracks=(Track("cpu", steps),), output="ready"
    )
    assert "nn_permute_" in checked(tmp_path, graph, moved).files["model.c"]


def shifted(kind: str, forward: bool) -> tuple[Graph, Plan]:
    """An image of which each pixel is overwritten a pixel further on, so that it has to be gone
    through from one end; and in units of a pixel, since its channels lie the other way round."""
    net = Net((4, 5, 6), np.random.default_rng(1), name="shifted")
    name = {
        "lookup": net.lookup, "sum": lambda: net.plus(net.last, net.last),
        "slopes": lambda: net.slopes((1, 1, 6)),
    }[kind]()  # fmt: skip
    net.dense(3)
    hand = Hand(net.graph())
    x, out = hand.put("image", 6), hand.put(name, 0 if forward else 12)
    table = hand.buffers[name]
    cells = np.asarray(table.addresses(table.box))[..., ::-1]
    hand.buffers[name] = replace(table, map=Table(tuple(cells.reshape(-1).tolist())))
    places = [(y, x, 0) for y in range(4) for x in range(5)]
    order = () if forward else tuple(reversed(places))
    y = hand.put(net.last, 200)
    return hand.graph, hand.plan(
        Compute(name, out, (x, *hand.parameters(name)), unit=(1, 1, 6), order=order),
        Compute(net.last, y, (out, *hand.parameters(net.last))),
    )


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("kind", ["lookup", "sum", "slopes"])
def test_element_by_element_from_either_end(kind: str, forward: bool, tmp_path: Path) -> None:
    native = checked(tmp_path, *shifted(kind, forward))
    assert ("nn_orders[" in native.files["model.c"]) == (not forward)
