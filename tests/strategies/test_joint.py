"""The joint schedule: peaks that have to hold, exact results, never more than another strategy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.plan.cost import Cost, cost
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.int8.support import Native, frames, host
from tests.comparing import equal
from tests.graphs import random_graph
from tests.strategies import nets
from tests.strategies.test_ordinary import BOARD
from tests.targets.cortex_m import board_named
from tests.tiers import quick


def proved(graph: Graph, streamed: bool, board: Hardware = BOARD) -> tuple[Plan, Cost]:
    """The plan and its cost, after it has been verified and run on a random frame."""
    plan = roomy(Joint().plan(graph, replace(board, streams_input=streamed)))
    report = verify(plan, graph)
    assert not report.recomputed
    given = frames(graph, 3)[2:]
    equal(interpret(plan, graph, given[0]).output, graph.outputs(given)[0])
    return plan, cost(plan, graph, board, report)


TABLE = [
    ("ds_cnn", lambda: nets.ds_cnn((64,) * 5), False, 3_708),
    ("ds_cnn", lambda: nets.ds_cnn((64,) * 5), True, 3_400),
    ("resnet8", nets.resnet8, False, 9_984),
    ("mobilenet_v1_vww", nets.mobilenet_v1_vww, True, 9_920),
    ("resnet8", nets.resnet8, True, 8_768),
    ("mobilenet_v1_vww", nets.mobilenet_v1_vww, False, 27_776),
]
"""Networks of MLPerf Tiny: bytes with the input held, and as it streams in."""


@pytest.mark.parametrize(("name", "graph", "streamed", "most"), quick(1, TABLE, ci=3))
def test_peaks_hold(name: str, graph: Callable[[], Graph], streamed: bool, most: int) -> None:
    _, found = proved(graph(), streamed)
    assert found.pmu_bytes <= most, name


SLOW = [
    ("res15", nets.res15, False, 30_400),
    ("res15", nets.res15, True, 30_400),
    ("micronet_kws_l", nets.micronet_kws_l, False, 27_800),
    ("micronet_kws_l", nets.micronet_kws_l, True, 27_500),
    ("mobilenet_v2_160", lambda: nets.mobilenet_v2(160, 2), False, 104_300),
    ("mobilenet_v2_160", lambda: nets.mobilenet_v2(160, 2), True, 70_900),
    ("mobilenet_v2_224", lambda: nets.mobilenet_v2(224), False, 189_000),
    ("mobilenet_v2_224", lambda: nets.mobilenet_v2(224), True, 104_900),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "graph", "streamed", "most"), SLOW)
def test_peaks_of_large_networks_hold(
    name: str, graph: Callable[[], Graph], streamed: bool, most: int
) -> None:
    network, board = graph(), replace(board_named("nucleo_l4r5zi"), streams_input=streamed)
    plan = roomy(Joint().plan(network, board))
    assert cost(plan, network, board, verify(plan, network)).pmu_bytes <= most, name


@pytest.mark.parametrize("seed", quick(2, [*range(80), *range(2000, 2600, 3)], ci=2))
def test_random_networks_run_exactly_in_blocks(seed: int, tmp_path: Path) -> None:
    """Kernels for a Cortex-M, by their twins in C."""
    streamed = bool(seed % 2)
    graph, board = (
        random_graph(seed // 2),
        replace(board_named("nucleo_l4r5zi"), streams_input=streamed),
    )
    plan, _ = proved(graph, streamed, board)
    native = Native(tmp_path, graph, plan, files=generate(graph, plan, board, {}))
    given = frames(graph, 3, seed)
    equal(native(given), graph.outputs(given))


@pytest.mark.parametrize("seed", [1205, 1224])
def test_a_convolution_over_all_rows_of_its_input_is_made_at_once(seed: int) -> None:
    """Its code takes a kernel's taps all at once: rows cannot be added up one by one."""
    graph, board = random_graph(seed), board_named("nucleo_l4r5zi")
    plan, _ = proved(graph, True, board)
    assert generate(graph, plan, board, {})


@pytest.mark.ci
def test_rows_that_lie_over_others_have_the_weights_of_those_that_do_not() -> None:
    graph = nets.ds_cnn((16,) * 3)
    plan, _ = proved(graph, True)
    text = generate(graph, plan, replace(host(), streams_input=True), {})["model.c"]
    tables = re.findall(r"static const int8_t (\w+?)_weights\w*\[", text)
    assert any(f"{name}_over(" in text and f"{name}(" in text for name in tables)
    assert len(set(tables)) == len(tables)


@pytest.mark.ci
def test_rows_outside_of_images_are_one_table() -> None:
    """Of all sizes that have a zero point in common, as long as the longest."""
    graph, board = nets.ds_cnn((16,) * 3), board_named("nucleo_l4r5zi")
    text = generate(graph, Joint().plan(graph, board), board, {})["model.c"]
    assert re.findall(r"int8_t (nn_outside\w*)\[(\d+)\] =", text) == [("nn_outside_80_0", "80")]
    assert text.count("nn_outside_80_0") > 2


@pytest.mark.parametrize("streamed", quick(0, [True, False], ci=1), ids=["streamed", "held"])
def test_rows_lie_in_blocks_where_kernels_are_made_for_that(streamed: bool) -> None:
    """Not more memory for it, and no layer is left to portable kernels."""
    graph = nets.ds_cnn((64,) * 5)
    plan, found = proved(graph, streamed, board_named("nucleo_l4r5zi"))
    _, channels_last = proved(graph, streamed)
    assert found.pmu_bytes <= channels_last.pmu_bytes
    kernels = {step.kernel for step in statements(plan) if isinstance(step, Compute)}
    assert kernels >= {"cortex_m.row_depthwise", "cortex_m.row_image", "cortex_m.row_added"}
    assert any("row" in name and ("pointwise" in name or "fused" in name) for name in kernels)


@pytest.mark.parametrize("seed", quick(2, range(60), ci=3))
def test_never_more_than_ordinary(seed: int) -> None:
    graph = random_graph(seed)
    _, found = proved(graph, False)
    ordinary = Ordinary().plan(graph, BOARD)
    assert found.pmu_bytes <= cost(ordinary, graph, BOARD).pmu_bytes


@pytest.mark.ci
def test_a_block_pixel_by_pixel_where_that_is_less_than_rows() -> None:
    graph = nets.fig1_block()
    plan, found = proved(graph, streamed=False)
    assert dict(plan.notes)["form"] == "herringbone" and found.pmu_bytes < 8_400


@pytest.mark.parametrize("seed", range(3))
def test_what_is_no_image(seed: int) -> None:
    """A dense layer that reads a matrix, which no strategy in place takes, or an image."""
    proved(KINDS["dense"](np.random.default_rng(seed)), streamed=False)


def test_rows_lie_over_rows_in_both_orders_with_delay() -> None:
    """All ways to overwrite an input are used."""
    ways = set()
    for seed in (5, 9):
        plan, _ = proved(random_graph(seed), False)
        for step in statements(plan):
            if isinstance(step, Compute) and any("aside" in name for name in step.scratch):
                ways.add((step.delay > 0, bool(step.order), step.unit[1] > 1))
    assert {(False, False, False), (False, True, False), (False, False, True)} <= ways


def test_equal_plans_each_time() -> None:
    graph = random_graph(4)
    assert Joint().plan(graph, BOARD) == Joint().plan(graph, BOARD)


FRESH = """
import json
import sys
from dataclasses import replace
from pipeline.plan.serialize import encoded
from pipeline.strategies.joint import Joint
from tests.graphs import random_graph
from tests.strategies import nets
from tests.targets.cortex_m import board_named

board = board_named("nucleo_l4r5zi")
for number, graph in enumerate((nets.ds_cnn((16,) * 3), *map(random_graph, range(3)))):
    hardware = replace(board, streams_input=number % 2 == 0)
    json.dump(encoded(Joint().plan(graph, hardware)), sys.stdout)
"""


@pytest.mark.ci
def test_equal_plans_in_fresh_processes() -> None:
    """However strings hash."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", FRESH], cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]  # fmt: skip
    one, other = (each.communicate()[0] for each in started)
    assert one == other and len(one) > 10_000 and not any(each.returncode for each in started)
