"""The joint schedule: peaks, exactness, never more than others; where fast, or repeating work."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import product
from math import inf, nan
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.kernels import modelled_cycles
from pipeline.plan.cost import Cost, cost
from pipeline.plan.fit import roomy
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.plan.well_formed import statements
from pipeline.search.planner import SURE
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone, Replace
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.int8.support import Native, host
from tests.comparing import equal
from tests.graphs import Net, random_graph
from tests.importers import tflite_reference
from tests.importers.test_tflite import MLPERF_TINY
from tests.public_models import LACKING, MODELS, needs_models
from tests.strategies import bench_joint, nets
from tests.strategies.proving import as_c, exact
from tests.strategies.test_ordinary import BOARD
from tests.targets.cortex_m import board_named
from tests.tiers import quick

L4R5 = board_named("nucleo_l4r5zi")
KWS, WIDE_KWS = nets.ds_cnn((16,) * 2), nets.ds_cnn((64,) * 5)
ROWS, REPEATED = Joint(), tuple(Joint(extra_macs=share) for share in (0.3, 0.1, 1.0))
FAST = tuple(Joint(objective="latency", arena_limit_times_least=times) for times in (1.0, 1.3, 1.7))


def streaming(board: Hardware, streamed: bool = True) -> Hardware:
    return replace(board, streams_input=streamed)


def proved(graph: Graph, board: Hardware = BOARD, joint: Joint = ROWS) -> tuple[Plan, Cost]:
    """The plan and its cost, after it has been verified and run on a random frame."""
    plan = roomy(joint.plan(graph, board))
    report = exact(plan, graph).report
    assert report.macs_executed <= (1 + joint.extra_macs) * graph.macs
    assert joint.extra_macs or not report.recomputed
    return plan, cost(plan, graph, board, report)


def computed(number: int) -> list[Compute]:
    """Steps of a random network's rows."""
    plan, _ = proved(random_graph(number))
    return [step for step in statements(plan) if isinstance(step, Compute)]


@pytest.mark.ci
@pytest.mark.parametrize("streamed", [False, True])
def test_peaks_hold(streamed: bool) -> None:
    _, found = proved(WIDE_KWS, streaming(BOARD, streamed))
    assert found.pmu_bytes <= bench_joint.MOST["kws_ref_model"][streamed][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", bench_joint.MOST)
def test_peaks_and_arenas_of_all_networks_hold(name: str) -> None:
    if name in bench_joint.FILES and not MODELS.is_dir():
        pytest.skip(LACKING)
    assert bench_joint.main([name]) == 0


@pytest.mark.parametrize("streamed", quick(0, [True, False], ci=1), ids=["streamed", "held"])
def test_rows_lie_in_blocks_where_kernels_are_made_for_that(streamed: bool) -> None:
    """Not more memory for it, little for scratch, and no layer is left to portable kernels."""
    plan, found = proved(WIDE_KWS, streaming(L4R5, streamed))
    _, channels_last = proved(WIDE_KWS, streaming(BOARD, streamed))
    assert found.pmu_bytes <= channels_last.pmu_bytes
    assert (
        found.pmu_bytes < found.arena_bytes <= bench_joint.ROOM["kws_ref_model"] * found.pmu_bytes
    )
    kernels = {step.kernel for step in statements(plan) if isinstance(step, Compute)}
    assert kernels >= {"cortex_m.row_depthwise", "cortex_m.row_conv2d", "cortex_m.row_pool"}
    assert any("row" in name and ("pointwise" in name or "fused" in name) for name in kernels)


OTHERS: tuple[Strategy, ...] = (Ordinary(), Partial(), Herringbone(), Replace())
CASES = [
    *((ROWS, 0), (REPEATED[0], 2), (ROWS, 1205), (ROWS, 1224), (FAST[0], 2), (ROWS, 3)),
    *((REPEATED[0], 1), (FAST[1], 4), (FAST[2], 6)),
    *product((ROWS, *REPEATED, *FAST), range(30)),
    *product((ROWS,), (*range(30, 80), *range(1000, 1300, 6))),
]
"""With the seeds of networks. 1205 and 1224 have a convolution over all rows of its input, whose
code takes a kernel's taps all at once."""


@pytest.mark.parametrize(("joint", "seed"), quick(3, dict.fromkeys(CASES), ci=6))
def test_random_networks_run_exactly_as_c(joint: Joint, seed: int, tmp_path: Path) -> None:
    """With the kernels of any core, and with those of a Cortex-M by their twins; in no more memory
    than strategies take that compute nothing twice and have exact sums."""
    graph = random_graph(seed)
    board = streaming(host() if seed % 6 == 3 else L4R5, seed % 4 in (0, 1))
    plan, found = proved(graph, board, joint)
    as_c(tmp_path, graph, plan, board, seed)
    if joint.objective != "latency":
        for other in (ROWS,) if joint.extra_macs else OTHERS:
            least = cost(roomy(other.plan(graph, board)), graph, board).pmu_bytes
            assert found.pmu_bytes <= least, other


@pytest.mark.slow
@needs_models
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_a_thousand_inputs_of_mlperf_tiny(name: str, tmp_path: Path) -> None:
    """Byte by byte what tflite-micro answers, by kernels for a Cortex-M4 as their twins: the input
    held, streamed, and the fastest plan in half as much again as the least memory."""
    graph, count = bench_joint.network(name), 1_000
    given = tflite_reference.frames(graph, count)
    wanted = tflite_reference.reference((MODELS / f"{name}.tflite").read_bytes(), given)
    fast = Joint(objective="latency", arena_limit_times_least=1.5)
    for number, (joint, streams) in enumerate(((Joint(), False), (Joint(), True), (fast, False))):
        board = streaming(L4R5, streams)
        plan = joint.plan(graph, board)
        files = generate(graph, plan, board, {})
        native = Native(tmp_path / str(number), graph, plan, files=files, sanitize=False)
        equal(native(given).reshape(count, -1), wanted, strategy=joint, streams=streams)


@pytest.mark.ci
def test_rows_that_lie_over_others_have_the_weights_of_those_that_do_not() -> None:
    graph = nets.ds_cnn((16,) * 3)
    plan, _ = proved(graph, streaming(BOARD))
    text = generate(graph, plan, streaming(host()), {})["model.c"]
    tables = re.findall(r"static const int8_t (\w+?)_weights\w*\[", text)
    assert any(f"{name}_over(" in text and f"{name}(" in text for name in tables)
    assert len(set(tables)) == len(tables)


@pytest.mark.ci
def test_rows_outside_of_images_are_one_table() -> None:
    """Share one table among all sizes that have a zero point in common, as long as the longest."""
    graph = nets.ds_cnn((16,) * 3)
    text = generate(graph, Joint().plan(graph, L4R5), L4R5, {})["model.c"]
    assert re.findall(r"int8_t (nn_outside\w*)\[(\d+)\] =", text) == [("nn_outside_80_0", "80")]
    assert text.count("nn_outside_80_0") > 2


@pytest.mark.ci
def test_a_block_pixel_by_pixel_where_that_is_less_than_rows() -> None:
    plan, found = proved(nets.fig1_block())
    assert dict(plan.notes)["form"] == "herringbone" and found.pmu_bytes < 8_400


def test_heads_of_two_axes_side_by_side() -> None:
    """Weigh pixels of a detector's heads, of two axes and several operators."""
    net = Net((4, 4, 3))
    trunk = net.conv(4)
    heads = [net.reshape((16, 2), net.conv(2, source=trunk)) for _ in range(2)]
    net.concat((heads[0], net.like(heads[1], heads[0])), axis=0)
    proved(net.graph())


def test_rows_lie_over_rows_in_both_orders_with_delay() -> None:
    """All ways to overwrite an input are used."""
    ways = {
        (step.delay > 0, bool(step.order), step.unit[1] > 1)
        for step in (*computed(5), *computed(9))
        if any("aside" in name for name in step.scratch)
    }
    assert {(False, False, False), (False, True, False), (False, False, True)} <= ways


FRESH = """
import json
import sys
from dataclasses import replace
from pipeline.errors import ThimbleError
from pipeline.plan.serialize import encoded
from pipeline.strategies.joint import Joint
from pipeline.strategies.others import quick_planners
from tests.graphs import random_graph
from tests.strategies import nets
from tests.targets.cortex_m import board_named

board = board_named("nucleo_l4r5zi")
graphs = nets.ds_cnn((16,) * 2), *map(random_graph, (0, 10))
for number, graph in enumerate(graphs):
    hardware = replace(board, streams_input=number % 2 == 0)
    for strategy in (Joint(), Joint(objective="latency"), *(each() for each in quick_planners(0))):
        try:
            json.dump(encoded(strategy.plan(graph, hardware)), sys.stdout)
        except ThimbleError as error:
            print(error)
json.dump(encoded(Joint(extra_macs=0.5).plan(nets.narrow(1, 8), board)), sys.stdout)
"""


OTHER = ["qemu-x86_64", "-cpu", "Haswell", str(Path(sys.executable).resolve())]
"""Without AVX-512."""

PLAIN = {"NPY_DISABLE_CPU_FEATURES": "X86_V3"}
"""Of AVX2, too: emulated by QEMU 7.2, NumPy's argsort doesn't sort."""


@pytest.mark.parametrize(
    "other",
    [
        pytest.param([], marks=pytest.mark.ci, id="hashes"),
        pytest.param(OTHER, marks=pytest.mark.slow, id="processor"),
    ],
)
def test_equal_plans_in_fresh_processes(other: list[str]) -> None:
    """However strings hash, and whatever the processor sorts and adds up with."""
    if other and not which(other[0]):
        pytest.skip("there is no qemu-x86_64")
    packages = os.pathsep.join(map(str, (ROOT, *sys.path)))
    started = [
        subprocess.Popen(
            [*command, "-c", FRESH], cwd=ROOT, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": packages, **more},
        )
        for seed, command, more in (
            ("1", [sys.executable], {}),
            ("2", other or [sys.executable], PLAIN if other else {}),
        )
    ]  # fmt: skip
    one, other = (each.communicate()[0] for each in started)
    assert one == other and len(one) > 10_000 and not any(each.returncode for each in started)


# --- where work may be repeated


@pytest.mark.parametrize(
    ("depth", "side", "shares"), quick(1, [(2, 16, (1.0,)), (3, 16, (0.2, 1.0))], ci=0)
)
def test_work_buys_memory(depth: int, side: int, shares: tuple[float, ...]) -> None:
    """The more of it may be repeated, the less is held; the plan says how much is."""
    graph, board = nets.narrow(depth, side), streaming(BOARD)
    plan, before = proved(graph, board, Joint(extra_macs=0))
    assert "repeated_macs_pct" not in dict(plan.notes)
    for share in shares:
        plan, found = proved(graph, board, Joint(extra_macs=share))
        assert found.pmu_bytes < before.pmu_bytes
        repeated = found.macs_executed / graph.macs - 1
        assert dict(plan.notes)["repeated_macs_pct"] == pytest.approx(100 * repeated, abs=0.006)
        assert 0 < repeated <= share
        before = found


# --- where it is to be fast


def fastest(graph: Graph, times: float) -> tuple[Plan, int]:
    """In so many times the least memory; and its arena."""
    plan = Joint(objective="latency", arena_limit_times_least=times).plan(graph, L4R5)
    return plan, cost(roomy(plan), graph, L4R5).arena_bytes


@pytest.mark.ci
def test_more_memory_is_never_slower_and_is_kept_to() -> None:
    least = cost(Joint().plan(KWS, L4R5), KWS, L4R5).arena_bytes
    before = inf
    for times in (1.0, 2.0, 6.0):
        plan, arena = fastest(KWS, times)
        assert arena <= times * least
        cycles = modelled_cycles(plan, KWS, L4R5)
        assert cycles <= before / SURE
        before = cycles


def test_whole_operators_stand_among_rows() -> None:
    """Weights that wait for flash are read once a call; where there is room that saves more."""
    graph = random_graph(18)
    made = [s for s in statements(fastest(graph, 1.7)[0]) if isinstance(s, Compute)]
    rows = {op.name: graph.tensors[op.output].shape[0] for op in graph.operators}
    whole = {step.out.size[0] == rows[step.op] for step in made if rows[step.op] > 1}
    assert whole == {True, False}


def test_whole_tensors_where_they_fit_and_rows_are_not_surely_faster() -> None:
    plan = Joint(objective="latency").plan(KWS, L4R5)
    assert dict(plan.notes)["form"] == "ordinary"
    whole = cost(Ordinary().plan(KWS, L4R5), KWS, L4R5).arena_bytes
    limited = Joint(objective="latency", arena_limit_bytes=whole - 1).plan(KWS, L4R5)
    assert dict(limited.notes)["form"] == "rows"
    assert cost(limited, KWS, L4R5).arena_bytes < whole


@pytest.mark.ci
def test_the_least_where_that_is_as_fast_or_nothing_fits() -> None:
    graph, small = random_graph(10), replace(L4R5, sram_bytes=2048 + 700)
    assert fastest(graph, 1.3)[0] == Joint().plan(graph, L4R5)
    assert Joint(objective="latency").plan(KWS, small) == Joint().plan(KWS, small)


SHARE = r"^strategy\.extra_macs=.*0 or more, such as 0\.1$"


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"objective": "latency", "arena_limit_bytes": 9, "arena_limit_times_least": 2.0},
            r"arena_limit_bytes=9 strategy\.arena_limit_times_least=2: give one of them",
        ),
        ({"arena_limit_bytes": 9}, "objective=memory takes as little as it finds"),
        ({"objective": "energy", "arena_limit_times_least": 0.5}, "at least 1"),
        ({"effort": 0.0}, r"strategy\.effort=0.0: a number, more than 0"),
        ({"seconds": inf}, r"strategy\.seconds=inf: a number, 0 or more"),
        ({"objective": "latency", "arena_limit_bytes": -1}, "at least 1"),
        ({"accumulator_bits": 12}, "accumulator_bits=12: choose 8, 16 or 32"),
        *(({"extra_macs": share}, SHARE) for share in (-0.1, nan, inf, "much", None, True)),
    ],
)
def test_mistaken_keys_are_refused_in_one_line(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        Joint(**keys)
