"""Patches: right on random networks, no more work repeated than is said, and as C."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import intervals
from pipeline.plan.draw import pseudocode
from pipeline.plan.vocabulary import Affine, Buffer, Compute, Plan, packed
from pipeline.schedules.channels import Pooled
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import lay, needed
from pipeline.schedules.patches import Patches, Run
from pipeline.schedules.rows import InputRows, Rows, reads
from pipeline.search.joint.segment import on_demand
from pipeline.search.moves.patches import stretches
from pipeline.search.moves.strips import pools
from pipeline.search.view.rows import Units
from tests.codegen.int8.support import host
from tests.graphs import Chained, Net, random_graph
from tests.strategies.proving import as_c, exact
from tests.strategies.test_ordinary import BOARD
from tests.targets.cortex_m import board_named
from tests.tiers import quick


def planned(
    graph: Graph, runs: Sequence[Run | Pooled], hardware: Hardware, streamed: bool = False
) -> Plan:
    """All in one segment."""
    units = Units(graph, hardware, needed(graph), streamed, runs=runs)
    order = on_demand(units, 0, [graph.output])
    begin = InputRows(graph.input, streamed, not streamed)
    steps = tuple(units.units[number].step for number in order)
    regions = [begin, Rows(steps, frozenset([graph.output]))]
    return lay(regions, Draft(graph, hardware)).plan("patches")


def some_runs(graph: Graph, seed: int) -> list[Run]:
    """Up to two, anywhere, patches of any size."""
    chance, operators = Random(seed), needed(graph)
    able = [each for each in stretches(graph, operators, 8) if each[0] < each[1]]
    chance.shuffle(able)
    found, taken = list[Run](), set[int]()
    for first, last in able:
        part, width = range(first, last + 1), graph.tensors[operators[last].output].shape[1]
        sizes = chance.randint(1, 3), chance.randint(1, width)
        run = Run(graph, tuple(operators[first : last + 1]), *sizes, chance.random() < 0.5)
        if len(found) < 2 and taken.isdisjoint(part) and run.reads:
            taken.update(part)
            found.append(run)
    return found


def inverted(height: int = 8, width: int = 9) -> Graph:
    """Thin, wide, depthwise, thin: what patches are for."""
    return Chained(Net((height, width, 4))).conv(32, (1, 1)).depthwise().conv(4, (1, 1)).graph()


def run_of(graph: Graph, rows: int, columns: int, slides: bool = False) -> Run:
    return Run(graph, tuple(needed(graph)), rows, columns, slides)


@pytest.mark.parametrize("seed", quick(2, range(80), ci=6))
def test_random_networks_run_exactly(seed: int, tmp_path: Path) -> None:
    """Interpreted, and as C with the kernels of a Cortex-M, by their twins, or of any core."""
    graph = random_graph(seed)
    streamed = bool(seed % 3 == 0 and len(graph.tensors[graph.input].shape) == 3)
    runs, board = some_runs(graph, seed), board_named("nucleo_l4r5zi") if seed % 2 else host()
    hardware = replace(board, streams_input=streamed)
    plan = planned(graph, runs, hardware, streamed)
    report = exact(plan, graph).report
    assert report.macs_executed <= graph.macs + sum(run.again for run in runs)
    as_c(tmp_path, graph, plan, hardware, seed)


@pytest.mark.parametrize("slides", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(1, 9), (1, 4), (2, 3), (8, 9)])
def test_what_is_repeated_is_known(rows: int, columns: int, slides: bool) -> None:
    """All of it is before the layer with windows, no columns where patches slide; or none."""
    graph = inverted()
    run = run_of(graph, rows, columns, slides)
    report = exact(planned(graph, [run], BOARD), graph).report
    assert report.macs_executed == graph.macs + run.again
    down = sum(min(8, top + rows + 1) - max(0, top - 1) for top in range(0, 8, rows))
    across = sum(min(9, low + columns + 1) - max(0, low - 1) for low in range(0, 9, columns))
    assert run.again == (down * (9 if slides else across) - 8 * 9) * 4 * 32


def test_a_cortex_m_has_fast_kernels_for_patches() -> None:
    """Between rows that lie anywhere, whole columns or not."""
    graph = inverted()
    plan = planned(graph, [run_of(graph, 2, 3)], board_named("nucleo_l4r5zi"))
    made = [step for step in plan.tracks[0].steps if isinstance(step, Compute)]
    assert len(made) == 3 * 4 * 3 and all(s.kernel.startswith("cortex_m.") for s in made)


def test_wide_layers_take_a_patch() -> None:
    """Three rows of 288 B are held; a patch has 3 x 3 pixels, and 1 of the layer after it."""
    graph = inverted()
    run = run_of(graph, 1, 1, slides=True)
    assert run.held == run_of(graph, 1, 1).held == 2 * (3 * 3 + 1) * 32
    rows, patches = (
        max(b.extent[1] for b in planned(graph, runs, BOARD).buffers if b.memory == "sram")
        for runs in ([], [run])
    )
    assert patches <= rows * 2 // 3


@pytest.mark.parametrize("channels", [24, 20])
def test_what_is_pooled_is_made_channel_by_channel(channels: int, tmp_path: Path) -> None:
    """Eight at a time, in the end four: the widest image is never whole, nor any row of it."""
    net = Net((5, 6, 4), np.random.default_rng(0))
    net.conv(channels, (1, 1))
    net.mean((5, 6))
    graph = net.graph()
    (pool,) = pools(graph, needed(graph))
    plan = planned(graph, [pool], host())
    assert exact(plan, graph).report.macs_executed == graph.macs
    used = max(b.extent[1] for b in plan.buffers if b.memory == "sram" and b.role == "activation")
    assert used <= 2 * (5 * 6 * 4 + 5 * 6 * 8 + channels + 8) and pool.held == 2 * 5 * 6 * 8
    as_c(tmp_path, graph, plan, host(), 0)


def test_no_patch_lies_in_the_padding() -> None:
    graph = Chained(Net((4, 4, 2))).conv(2).conv(2, (1, 1), padding=(0, 0, 3, 0)).graph()
    assert not run_of(graph, 1, 2).reads
    assert run_of(graph, 1, 7).reads


def test_rows_of_patches_are_read_where_they_are() -> None:
    graph = inverted()
    found = reads(Patches(run_of(graph, 2, 4), 4), graph, lambda op, made: {})
    assert found == {graph.input: range(3, 7)}


def test_stretches_end_where_others_read() -> None:
    net = Net((6, 6, 4), np.random.default_rng(0))
    first = net.conv(4)
    net.conv(4)
    net.plus(first, net.last)
    net.conv(4)
    graph = net.graph()
    found = {(0, 0), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)}
    assert set(stretches(graph, needed(graph), 8)) == found


def test_a_part_of_a_tensor_has_no_other_places() -> None:
    """Whatever lies around it may be taken, and steps that would touch that are no plan's; what a
    part holds is said."""
    part = Affine(-2 * 3, (2 * 4, 2), held=((1, 3), (0, 3)))
    buffer = Buffer("t.part", "t", "sram", (5, 4), 8, part)
    assert buffer.extent == (2, 2 + 2 * 7) and intervals(buffer).tolist() == [[2, 8], [10, 16]]
    assert not Affine(0, (8, 2), held=((1, 6), (0, 3))).fits((5, 4))
    assert not Affine(0, (8, 2), (2, 0), ((1, 3), (0, 3))).fits((5, 4))
    ring = Affine(-2 * 3, (2 * 3, 2), (0, 2), ((1, 3), (0, 4)))
    assert ring.fits((5, 4)) and ring.extent((5, 4), 2) == (0, 2 * 5)
    assert packed((5, 4), 8).fits((5, 4))
    plan = planned(inverted(), [run_of(inverted(), 2, 4)], BOARD)
    assert " for 0:3, 0:5, 0:32" in pseudocode(plan)
