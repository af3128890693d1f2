"""Random networks: planned, verified, interpreted, generated, run. All give the graph's outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline.plan.calibrate import calibrated
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from tests.codegen.int8.loops import looped
from tests.codegen.int8.support import Native, apart, frames, host
from tests.codegen.support import by_tier
from tests.comparing import equal
from tests.graphs import random_graph
from tests.strategies.nets import fig1_block
from tests.tiers import quick

QUICK = 60


def check(seed: int, folder: Path) -> None:
    graph = random_graph(seed)
    given = frames(graph, 5, seed)
    expected = graph.outputs(given)
    plan = Ordinary().plan(graph, host())
    verify(plan, graph)
    equal(interpret(plan, graph, given[2]).output, expected[2], seed=seed)
    equal(Native(folder / f"{seed}", graph, plan)(given), expected, seed=seed)
    if seed % 5 == 0:
        native = Native(folder / f"{seed} apart", graph, apart(graph), sanitize=False)
        equal(native(given), expected, seed=seed)


def check_loops(seed: int, folder: Path) -> None:
    """The same network by tiles, channel loops and partial sums."""
    graph = random_graph(seed)
    plan = looped(graph, seed)
    verify(plan, graph)
    given = frames(graph, 4, seed)
    expected = graph.outputs(given)
    equal(interpret(plan, graph, given[2]).output, expected[2], seed=seed)
    equal(Native(folder / f"{seed}", graph, plan)(given), expected, seed=seed)


def check_partial(seed: int, folder: Path) -> None:
    """As ``strategy=partial`` plans it, with exact and with rounded sums."""
    graph = random_graph(seed)
    given = frames(graph, 4, seed)
    for bits in (32, 8):
        plan = calibrated(Partial(accumulator_bits=bits).plan(graph, host()), graph, given)
        verify(plan, graph)
        expected = np.stack([interpret(plan, graph, frame).output for frame in given])
        native = Native(folder / f"{seed} {bits}", graph, plan)
        equal(native(given), expected, seed=seed, bits=bits)


@pytest.mark.parametrize("seed", quick(1, [0, 2, 3, 4, 5], ci=1))
def test_patches(seed: int, tmp_path: Path) -> None:
    """As ``strategy=patch`` plans them: rings in rows and columns, outputs that go round them."""
    graph = random_graph(seed)
    plan = Patch(rows=2, columns=2).plan(graph, host())
    given = frames(graph, 4, seed)
    equal(Native(tmp_path, graph, plan)(given), graph.outputs(given))


def test_patches_of_an_inverted_bottleneck(tmp_path: Path) -> None:
    graph = fig1_block()
    plan = Patch(rows=2, columns=3).plan(graph, host())
    given = frames(graph, 3)
    native = Native(tmp_path, graph, plan)
    equal(native(given), graph.outputs(given))


def check_rounded(seed: int, folder: Path) -> None:
    """Accumulators of 8 and 16 bits: the interpreter says what they hold."""
    graph = random_graph(seed)
    plan = looped(graph, seed, rounded=True)
    verify(plan, graph)
    given = frames(graph, 4, seed)
    expected = np.stack([interpret(plan, graph, frame).output for frame in given])
    equal(Native(folder / f"{seed}", graph, plan)(given), expected, seed=seed)


@pytest.mark.parametrize(
    ("check", "seeds"),
    by_tier(
        (check, check_loops, check_partial, check_rounded), range(3), range(3, 8), range(8, 150)
    ),
)
def test_random_networks(check: Callable[[int, Path], None], seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        check(seed, tmp_path)


def test_the_networks_are_of_every_kind() -> None:
    kinds: dict[str, int] = {}
    for seed in range(QUICK):
        graph = random_graph(seed)
        for op in graph.operators:
            kinds[type(op).__name__] = kinds.get(type(op).__name__, 0) + 1
        assert random_graph(seed).hash == graph.hash
    assert min(kinds.values()) >= 5 and len(kinds) == 11, kinds


def test_values_neither_vanish_nor_saturate() -> None:
    """Networks whose outputs are all alike would not notice a wrong sum."""
    spread = []
    for seed in range(QUICK):
        graph = random_graph(seed)
        outputs = graph.outputs(frames(graph, 8, seed)[2:])
        spread.append(outputs.reshape(len(outputs), -1).std(axis=0).mean())
    assert np.mean(np.array(spread) > 2) > 0.7, sorted(spread)


def test_rounded_sums_do_round() -> None:
    rounded = different = 0
    for seed in range(18):
        graph = random_graph(seed)
        plan = looped(graph, seed, rounded=True)
        (frame,) = frames(graph, 3, seed)[2:]
        rounded += any(buffer.step > 1 for buffer in plan.buffers)
        different += not np.array_equal(
            interpret(plan, graph, frame).output, graph.outputs(frame[None])[0]
        )
    assert rounded > 9 and different > 6, (rounded, different)
