"""Plans by hand, at random, and of random networks, their tensors strewn about or not: verified,
interpreted, generated, run. All give the graph's outputs, or the interpreter's of rounded sums."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.plan.calibrate import calibrated
from pipeline.plan.interpret import interpret
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from tests.codegen.int8.loops import KINDS, Kind, looped, scattered
from tests.codegen.int8.plans import PLANS
from tests.codegen.int8.support import apart
from tests.codegen.support import by_tier, checked, frames, host
from tests.graphs import random_graph
from tests.plan.fixtures import channel_partial
from tests.strategies.nets import fig1_block
from tests.tiers import quick


@pytest.mark.parametrize("name", PLANS)
def test_c_does_what_the_plan_says(name: str, tmp_path: Path) -> None:
    graph, plan = PLANS[name]()
    checked(tmp_path, graph, plan, given=frames(graph), interpreted=True)


def test_the_vocabularys_own_channel_loop(tmp_path: Path) -> None:
    plan, graph = channel_partial(np.random.default_rng(0))
    checked(tmp_path, graph, plan)


def source(name: str) -> str:
    graph, plan = PLANS[name]()
    return generate(graph, plan, host(), {})["model.c"]


def invoke(name: str) -> str:
    return source(name).partition("nn_status_t nn_invoke(void) {")[2]


def test_loops_stay_loops() -> None:
    text = invoke("channel loop")
    assert "for (int32_t k = 0; k < 3; k++) {" in text
    assert text.count("nn_") < 30
    text, whether_fed = invoke("nested loops"), 1
    assert text.count("for (") == 3 and text.count("if (") == whether_fed


def test_what_is_in_place_costs_nothing() -> None:
    assert "concat" not in re.sub(r"/\*.*?\*/", "", invoke("concat in place"))


def test_overlapping_pointers_are_not_declared_apart() -> None:
    assert "restrict" not in source("in place") and "restrict" in source("channel loop")


def test_tiles_share_one_function() -> None:
    """Steps that differ in addresses and ranges only do not multiply the code."""
    assert len(re.findall(r"^static NN_KERNEL void ", source("row ring"), re.MULTILINE)) == 3


def whole(seed: int) -> Plan:
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
    by_tier((whole, loops, partial, rounded), range(3), range(3, 9), range(9, 150)),
)
def test_random_networks(plan_of: Callable[[int], Plan], seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        graph, plan, given = random_graph(seed), plan_of(seed), frames(random_graph(seed), 4, seed)
        expected = None
        if plan_of in (partial, rounded):
            expected = np.stack([interpret(plan, graph, frame).output for frame in given])
        checked(tmp_path / f"{seed}", graph, plan, given=given, expected=expected, interpreted=True)


@pytest.mark.parametrize("seed", quick(1, [0, 2, 3, 4, 5, None], ci=1))
def test_patches(seed: int | None, tmp_path: Path) -> None:
    """As ``strategy=patch`` plans them: rings in rows and columns, outputs that go round them."""
    graph = fig1_block() if seed is None else random_graph(seed)
    checked(tmp_path, graph, Patch(rows=2, columns=2).plan(graph, host()))


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
        outputs = graph.outputs(frames(graph, 8, seed)[2:])
        spread.append(outputs.reshape(len(outputs), -1).std(axis=0).mean())
    assert min(kinds.values()) >= 5 and len(kinds) == 11, kinds
    assert np.mean(np.array(spread) > 2) > 0.7, sorted(spread)


def test_rounded_sums_do_round() -> None:
    different = 0
    for seed in range(18):
        graph, plan = random_graph(seed), rounded(seed)
        (frame,) = frames(graph, 3, seed)[2:]
        found = interpret(plan, graph, frame).output
        different += not np.array_equal(found, graph.outputs(frame[None])[0])
    assert different > 6
