"""How a plan runs each layer: order, overlap, steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.graph.graph import Graph
from pipeline.kernels import formed
from pipeline.plan.forms import BY_COLUMNS, BY_ROWS, MIXED, Order, forms, traversal
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.cortex_m.support import core
from tests.strategies import nets
from tests.strategies.chains import Chain, board, mnist
from tests.strategies.test_chains import residual
from tests.strategies.test_ordinary import BOARD


def said(plan: Plan) -> list[str]:
    return [form.said for form in forms(plan).values()]


def test_peeled_over_its_input() -> None:
    plan = Herringbone().plan(mnist().graph(), board())
    first, *convolutions, _, last = said(plan)
    assert (first, last) == ("in 28 steps", "at once")
    assert convolutions == ["at once, by rows and columns, over its input"] * 3
    assert forms(plan)["conv2"].over == ["conv1"]


def test_by_columns_where_maps_are_wide() -> None:
    chain = Chain((2, 4, 5)).conv("y", 5, padding=(1, 1, 1, 1))
    plan = Herringbone().plan(chain.graph(), board(streams=False))
    assert said(plan) == ["at once, by columns, over its input"]


def test_whole_tensors_apart() -> None:
    assert set(said(Ordinary().plan(mnist().graph(), board(streams=False)))) == {"at once"}


def test_a_block_in_turns() -> None:
    plan = Herringbone().plan(residual(5, 4, 2), board(streams=False))
    assert all("steps, in turns with others" in each for each in said(plan))
    assert [form.layer for form in forms(plan).values() if "over its input" in form.said]


def test_channels_one_after_the_other() -> None:
    plan = Partial(accumulator_bits=8, channels=1).plan(nets.fig1_block(), BOARD)
    assert any("channel by channel" in each for each in said(plan))


@pytest.mark.parametrize(
    ("order", "name"),
    [
        (((0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0)), BY_ROWS),
        (((1, 0, 0), (1, 1, 0), (0, 0, 0), (0, 1, 0)), BY_ROWS),
        (((0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)), BY_COLUMNS),
        (((0, 0, 0), (0, 1, 0), (0, 2, 0), (1, 0, 0), (2, 0, 0), (1, 1, 0)), MIXED),
        (((2,), (1,), (0,)), BY_ROWS),
    ],
)
def test_orders(order: Order, name: str) -> None:
    assert traversal(order) == name


def wide() -> Graph:
    return residual(3, 6, 8)


def test_with_cycles_where_kernels_declare_the_cores() -> None:
    graph = wide()
    for hardware, known in ((core(), True), (replace(core(), core="host", cpu=""), False)):
        rows = formed(Herringbone().plan(graph, hardware), graph, hardware)
        assert [row["layer"] for row in rows] == [op.name for op in graph.operators]
        assert all(("modelled_cycles" in row) == known for row in rows)
        assert not known or all(row["modelled_cycles"] > 1000 for row in rows)
