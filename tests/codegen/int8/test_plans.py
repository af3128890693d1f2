"""Plans by hand, at random, of random networks, their tensors strewn about or not, and in place, in
every layout: verified, interpreted, generated, run. All give the graph's outputs, or the
interpreter's of rounded sums."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.calibrate import calibrated
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Clear, Compute, Finish, Plan, Table
from pipeline.strategies.base import LAYOUTS, Layout, Strategy
from pipeline.strategies.in_place import Herringbone, Replace, SingleTranspose
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from tests.codegen.int8.loops import KINDS, Kind, looped, scattered
from tests.codegen.int8.support import PLANS, Hand, apart
from tests.codegen.support import by_tier, checked, frames, host
from tests.graphs import Chained, Net, random_graph
from tests.strategies.nets import fig1_block
from tests.tiers import quick


@pytest.mark.parametrize("name", PLANS)
def test_c_does_what_the_plan_says(name: str, tmp_path: Path) -> None:
    graph, plan = PLANS[name]()
    checked(tmp_path, graph, plan, given=frames(graph), interpreted=True)


def test_an_operand_that_is_added_in_parts_is_refused() -> None:
    net = Net((4, 3, 2), np.random.default_rng(0))
    name = net.plus("image", "image")
    hand = Hand(net.graph())
    image, out = hand.put("image", 0), hand.put(name, 24)
    acc = hand.put(name, 48, name="a", bits=32)
    halves = [replace(image, lo=(row, 0, 0), size=(2, 3, 2)) for row in (0, 2)]
    adding = [Compute(name, acc, (half,), partial=True) for half in halves]
    plan = hand.plan(Clear(name, acc), *adding, Finish(name, acc, out))
    verify(plan, net.graph())
    with pytest.raises(ThimbleError, match="add0: code for this core adds an operand's box whole"):
        generate(net.graph(), plan, host(), {})


def source(name: str) -> str:
    graph, plan = PLANS[name]()
    return generate(graph, plan, host(), {})["model.c"]


def test_what_is_in_place_costs_nothing() -> None:
    invoke = source("concat in place").partition("nn_status_t nn_invoke(void) {")[2]
    assert "concat" not in re.sub(r"/\*.*?\*/", "", invoke)


def test_overlapping_pointers_are_not_declared_apart() -> None:
    assert "restrict" not in source("in place") and "restrict" in source("channel loop")


def test_tiles_share_one_function() -> None:
    """Steps that differ in addresses and ranges share code: a sum has two functions, by stride."""
    graph = fig1_block()
    plan = Patch(rows=2, columns=2).plan(graph, host())
    text = generate(graph, plan, host(), {})["model.c"]
    assert len(re.findall(r"^static NN_KERNEL void ", text, re.MULTILINE)) == 4 + 1
    assert len(plan.tracks[0].steps) == 4 * 4


def as_tensors(seed: int) -> Plan:
    return Ordinary().plan(random_graph(seed), host())


def loops(seed: int) -> Plan:
    """By tiles, channel loops and partial sums."""
    return looped(random_graph(seed), seed)


def rounded(seed: int) -> Plan:
    """Accumulators of 8 and 16 bits: the interpreter says what they hold."""
    return looped(random_graph(seed), seed, rounded=True)


def partial(seed: int) -> Plan:
    """As ``strategy=partial`` plans it, with exact or with rounded sums."""
    graph = random_graph(seed)
    plan = Partial(accumulator_bits=(32, 8)[seed % 2]).plan(graph, host())
    return calibrated(plan, graph, frames(graph, 4, seed))


@pytest.mark.parametrize(
    ("plan_of", "seeds"),
    by_tier((as_tensors, loops, partial, rounded), range(3), range(3, 9), range(9, 80)),
)
def test_random_networks(plan_of: Callable[[int], Plan], seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        graph, plan, given = random_graph(seed), plan_of(seed), frames(random_graph(seed), 4, seed)
        expected = None
        if plan_of in (partial, rounded):
            expected = np.stack([interpret(plan, graph, frame).output for frame in given])
        checked(tmp_path / f"{seed}", graph, plan, given=given, expected=expected, interpreted=True)


def check_scattered(kind: Kind, seed: int, loops: bool, folder: Path) -> str:
    graph = random_graph(seed)
    plan = scattered(looped(graph, seed) if loops else apart(graph), graph, kind, seed)
    given = frames(graph, 4, seed)
    native = checked(folder / f"{seed}", graph, plan, given=given, interpreted=True)
    return native.files["model.c"]


@pytest.mark.parametrize(("kind", "seeds"), by_tier(KINDS, range(1), range(1, 3), range(3, 12)))
def test_rows_pixels_and_elements_anywhere(kind: Kind, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        assert "nn_row_places[" in check_scattered(kind, seed, False, tmp_path)


@pytest.mark.parametrize(("kind", "seeds"), by_tier(KINDS, range(0), range(2), range(2, 12)))
def test_anywhere_in_loops_and_as_sums(kind: Kind, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        check_scattered(kind, seed, True, tmp_path)


def test_networks_are_of_every_kind_and_values_neither_vanish_nor_saturate() -> None:
    """Networks whose outputs are all alike would not notice a wrong sum."""
    kinds, spread = dict[str, int](), []
    for seed in range(60):
        graph = random_graph(seed)
        for op in graph.operators:
            kinds[type(op).__name__] = kinds.get(type(op).__name__, 0) + 1
        outputs = graph.evaluate(frames(graph, 8, seed)[2:])
        spread.append(outputs.reshape(len(outputs), -1).std(axis=0).mean())
    assert min(kinds.values()) >= 5 and len(kinds) == 11, kinds
    assert np.mean(np.array(spread) > 2) > 0.7, sorted(spread)


def test_rounded_sums_do_round() -> None:
    different = 0
    for seed in range(18):
        graph, plan = random_graph(seed), rounded(seed)
        (frame,) = frames(graph, 3, seed)[2:]
        found = interpret(plan, graph, frame).output
        different += not np.array_equal(found, graph.evaluate(frame[None])[0])
    assert different > 6


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
    net = Chained(Net((6, 6, 2), np.random.default_rng(2), name="between"))
    graph = net.conv(5, (3, 3)).lookup().dense(6).graph()
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
