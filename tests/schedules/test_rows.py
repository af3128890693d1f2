"""Rows on demand: right on random networks, and as small as is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import PlanError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.machine.said import uncovered
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute
from pipeline.plan.well_formed import statements
from pipeline.schedules import rows
from pipeline.schedules.draft import Draft
from pipeline.schedules.lower import Laid, lay, needed
from tests.codegen.cortex_m.support import all_rows
from tests.codegen.int8.support import host
from tests.graphs import Net, random_graph
from tests.strategies import nets
from tests.strategies.proving import as_c, exact
from tests.strategies.test_ordinary import BOARD
from tests.targets.cortex_m import board_named
from tests.tiers import quick


def laid(
    graph: Graph, streamed: bool = False, hardware: Hardware = BOARD, scratch: bool = False
) -> Laid:
    begin = rows.InputRows(graph.input, streamed, not streamed)
    order = all_rows(graph, hardware, needed(graph), streamed)
    regions = [begin, rows.Rows(order, frozenset([graph.output]))]
    return lay(regions, Draft(graph, hardware), cells=None if scratch else 0)


@pytest.mark.parametrize("seed", quick(6, range(40), ci=6))
def test_random_networks_run_exactly_and_as_they_arrive(seed: int) -> None:
    graph = random_graph(seed)
    if len(graph.tensors[graph.input].shape) != 3:
        pytest.skip("the input has no rows")
    found = laid(graph, streamed=True)
    exact(found.plan("rows"), graph)
    held = laid(graph)
    report = exact(held.plan("rows"), graph).report
    assert report.macs_executed <= graph.macs and not report.recomputed  # some rows nobody reads
    assert found.bound <= held.bound


@pytest.mark.parametrize("name", ["host", "nucleo_l4r5zi"])
def test_an_input_that_lies_elsewhere_takes_no_room(name: str, tmp_path: Path) -> None:
    """Nor is it ever written; nothing else may be brought that way."""
    net = Net((12, 12, 3), np.random.default_rng(0), name="net")
    inner = net.conv(16, (3, 3))
    net.conv(4, (3, 3), stride=(2, 2))
    graph, board = net.graph(), host() if name == "host" else board_named(name)
    plan = laid(graph, hardware=replace(board, input_again=True)).plan("rows")
    assert exact(plan, graph).sram_bytes + 12 * 12 < exact(laid(graph).plan(""), graph).sram_bytes
    as_c(tmp_path, graph, plan, board)
    assert name == "host" or "outside of the arena" in uncovered(plan, board, "simulate")
    buffers = [replace(b, memory="frame") if b.tensor == inner else b for b in plan.buffers]
    with pytest.raises(PlanError, match="writes to frame, which is read-only"):
        verify(roomy(replace(plan, buffers=tuple(buffers))), graph)


def test_a_row_is_made_when_it_is_asked_for() -> None:
    """Two 3x3 layers: the first is two rows ahead of the second, never more."""
    net = Net((8, 6, 2), np.random.default_rng(0))
    first = net.conv(3, (3, 3), padding=(0, 0, 0, 0))
    second = net.conv(4, (3, 3), padding=(0, 0, 0, 0))
    graph = net.graph()
    order = all_rows(graph, BOARD, needed(graph))
    made = [(step.op.output, step.row) for step in order if isinstance(step, rows.RowStep)]
    assert made == [
        *[(first, 0), (first, 1), (first, 2), (second, 0)],
        *[(first, 3), (second, 1), (first, 4), (second, 2), (first, 5), (second, 3)],
    ]


def test_an_output_row_lies_over_the_input_row_that_dies() -> None:
    """Pointwise, as many channels: no row needs room of its own, but a pixel that is kept aside."""
    net = Net((5, 4, 3), np.random.default_rng(0))
    net.conv(3, (1, 1))
    found = laid(net.graph())
    assert found.cells == 2 * (5 * 4 * 3 + 3)


def test_a_mean_takes_rows_as_they_come() -> None:
    """One row of the first layer at a time, and sums: the layer never exists."""
    net = nets.Net((16, 16, 3))
    net.head(net.conv("input", 8), 4)
    graph = net.graph()
    plan = laid(graph).plan("rows")
    exact(plan, graph)
    parts = [s for s in statements(plan) if isinstance(s, Compute) and s.partial]
    assert len(parts) == 16
