"""The joint schedule where it is to be fast: within a limit, rows and whole operators together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import modelled_cycles
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from pipeline.strategies.joint import SURE, Joint
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import Native, frames
from tests.comparing import equal
from tests.graphs import random_graph
from tests.strategies import nets
from tests.targets.cortex_m import board_named
from tests.tiers import quick

BOARD = board_named("nucleo_l4r5zi")
KWS = nets.ds_cnn((16,) * 2)


def fastest(graph: Graph, times: float, board: Hardware = BOARD) -> tuple[Plan, int]:
    """In so many times the least memory; and its arena."""
    plan = Joint(objective="latency", arena_limit_times_least=times).plan(graph, board)
    return plan, cost(roomy(plan), graph, board).arena_bytes


def mixed(plan: Plan, graph: Graph) -> bool:
    """Rows of some operators, all of another's several rows at once."""
    made = [step for step in statements(plan) if isinstance(step, Compute)]
    rows = {op.name: graph.tensors[op.output].shape[0] for op in graph.operators}
    parts = {step.out.size[0] == rows[step.op] for step in made if rows[step.op] > 1}
    return parts == {True, False}


@pytest.mark.parametrize("seed", quick(0, range(40), ci=1))
def test_random_networks_run_exactly(seed: int, tmp_path: Path) -> None:
    graph = random_graph(seed)
    times = (1.0, 1.3, 1.7)[seed % 3]
    board = replace(BOARD, streams_input=seed % 4 == 3)
    plan, _ = fastest(graph, times, board)
    assert not verify(roomy(plan), graph).recomputed
    given = frames(graph, 3, seed)
    equal(interpret(roomy(plan), graph, given[2]).output, graph.outputs(given)[2])
    native = Native(tmp_path, graph, plan, files=generate(graph, plan, board, {}))
    equal(native(given), graph.outputs(given))


@pytest.mark.ci
def test_more_memory_is_never_slower_and_is_kept_to() -> None:
    graph = KWS
    least = cost(Joint().plan(graph, BOARD), graph, BOARD).arena_bytes
    before = np.inf
    for times in (1.0, 2.0, 6.0):
        plan, arena = fastest(graph, times)
        assert arena <= times * least
        cycles = modelled_cycles(plan, graph, BOARD)
        assert cycles <= before / SURE
        before = cycles


def test_whole_operators_stand_among_rows() -> None:
    """Weights that wait for flash are read once a call; where there is room that saves more."""
    graph = random_graph(18)
    assert mixed(fastest(graph, 1.7)[0], graph)


def test_whole_tensors_where_they_fit_and_rows_are_not_surely_faster() -> None:
    graph = KWS
    plan = Joint(objective="latency").plan(graph, BOARD)
    assert dict(plan.notes)["form"] == "ordinary"
    whole = cost(Ordinary().plan(graph, BOARD), graph, BOARD).arena_bytes
    limited = Joint(objective="latency", arena_limit_bytes=whole - 1).plan(graph, BOARD)
    assert dict(limited.notes)["form"] == "rows"
    assert cost(limited, graph, BOARD).arena_bytes < whole


@pytest.mark.ci
def test_as_little_as_possible_where_that_is_as_fast() -> None:
    graph = random_graph(10)
    assert fastest(graph, 1.3)[0] == Joint().plan(graph, BOARD)


@pytest.mark.ci
def test_nothing_fits_then_it_is_the_least() -> None:
    graph, small = KWS, replace(BOARD, sram_bytes=2048 + 700)
    assert Joint(objective="latency").plan(graph, small) == Joint().plan(graph, small)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"objective": "latency", "arena_limit_bytes": 9, "arena_limit_times_least": 2.0},
            "arena_limit_bytes=9 strategy.arena_limit_times_least=2: give one of them",
        ),
        ({"arena_limit_bytes": 9}, "objective=memory takes as little as it finds"),
        ({"objective": "energy", "arena_limit_times_least": 0.5}, "at least 1"),
        ({"objective": "latency", "arena_limit_bytes": -1}, "at least 1"),
        ({"accumulator_bits": 12}, "accumulator_bits=12: choose 8, 16 or 32"),
    ],
)
def test_contradicting_keys_are_refused_in_one_line(keys: dict[str, object], said: str) -> None:
    with pytest.raises(ThimbleError) as error:
        Joint(**keys)  # type: ignore[arg-type]
    assert said in str(error.value) and "\n" not in str(error.value)
