"""Rows lie in blocks where kernels are faster so; portable code finds them by a table."""

import re

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.plan.vocabulary import Compute
from pipeline.plan.well_formed import statements
from pipeline.schedules.lower import needed
from pipeline.search.layouts import cycles_of_rows, form_of_a_row, in_blocks
from pipeline.strategies.joint import Joint
from tests.codegen.cortex_m.support import core
from tests.graphs import Chained, Net
from tests.strategies import nets
from tests.targets.cortex_m import board_named
from tests.tiers import quick

BOARD = board_named("nucleo_f446re")


def branches(columns: int) -> Graph:
    """Convolutions whose best rows are in blocks, concatenated."""
    net = nets.Net((16, columns, 16))
    x = net.conv("input", 16, 3)
    parts = [net.conv(x, 16), net.conv(x, 16, 3), net.conv(net.conv(x, 8), 16, 3)]
    return net.graph(net.conv(net.concat(*parts), 16, 3))


@pytest.mark.parametrize("columns", quick(0, [5, 16, 14, 2], ci=2))
def test_what_is_concatenated_lies_in_blocks(columns: int) -> None:
    graph = branches(columns)
    joined = next(op for op in graph.operators if len(op.inputs) == 3)
    chosen = in_blocks(graph, graph.operators, BOARD, frozenset({graph.output}))
    assert chosen.keys() >= {*joined.inputs, joined.output}
    plan = Joint().plan(graph, BOARD)
    used = {s.kernel for s in statements(plan) if isinstance(s, Compute) and s.op == joined.name}
    assert used == {"int8.concat"}
    text = generate(graph, plan, BOARD, {})["model.c"]
    assert "nn_scattered[" not in text


@pytest.mark.ci
def test_no_weights_lie_in_two_orders() -> None:
    graph = branches(5)
    text = generate(graph, Joint().plan(graph, BOARD), BOARD, {})["model.c"]
    tables = re.findall(r"nn_(\w+?)_(?:row_)?weights\w*\[\d+\] = ", text)
    assert sorted(tables) == sorted({op.name for op in graph.operators if op.weighted})


@pytest.mark.ci
def test_what_only_portable_code_reads_lies_in_pixels() -> None:
    net = Net((16, 16, 16), np.random.default_rng(1))
    net.conv(16, (3, 3))
    made = net.conv(16, (1, 1))
    padded = net.pad(((1, 1), (1, 1), (0, 0)))
    net.conv(16, (3, 3))
    graph = net.graph()
    chosen = in_blocks(graph, graph.operators, BOARD, frozenset({graph.output}))
    assert not chosen.keys() & {made, padded}
    text = generate(graph, Joint().plan(graph, BOARD), BOARD, {})["model.c"]
    assert "nn_scattered[" not in text


@pytest.mark.parametrize("padded", quick(1, [False, True]), ids=["all", "padded"])
def test_tables_and_gates_go_through_blocks_as_they_lie(padded: bool) -> None:
    """Even behind what has to lie in pixels."""
    net = Net((14, 14, 16), np.random.default_rng(1))
    net.conv(16, (3, 3))
    if padded:
        net.pad(((1, 1), (1, 1), (0, 0)))
    before = {*net.tensors}
    net.lookup(net.conv(16, (3, 3)))
    net.lookup(net.conv(16, (1, 1)))
    expanded = net.lookup(net.depthwise((5, 5)))
    net.rescaled_mean()
    net.times(expanded, net.lookup(net.conv(16, (1, 1))))
    net.conv(8, (1, 1))
    graph = net.graph()
    chosen = in_blocks(graph, graph.operators, BOARD, frozenset({graph.output}))
    images = {op.output for op in graph.operators if graph.tensors[op.output].shape[0] > 1}
    assert chosen.keys() >= images - before - {graph.output}
    text = generate(graph, Joint().plan(graph, BOARD), BOARD, {})["model.c"]
    assert "nn_scattered[" not in text


@pytest.mark.parametrize("graph", [nets.ds_cnn((16,) * 3), nets.narrow()], ids=["ds", "res"])
def test_all_others_lie_in_blocks(graph: Graph) -> None:
    chosen = in_blocks(graph, graph.operators, BOARD, frozenset({graph.output}))
    images = {op.output for op in graph.operators if len(graph.tensors[op.output].shape) == 3}
    assert chosen.keys() >= {name for name in images if graph.tensors[name].shape[0] > 1}


NOTHING = frozenset[str]()


def separable() -> Graph:
    """Depthwise-separable, then a pooling with windows, which has no kernel for blocks."""
    net = Chained(Net((12, 14, 3))).conv(8).depthwise().conv(16, (1, 1))
    return net.maximum((2, 2), stride=(2, 2)).dense(4).graph()


def total(graph: Graph, layout: dict[str, int]) -> float:
    forms = (form_of_a_row(op, graph, layout) for op in graph.operators)
    return sum(cycles_of_rows(form, core()) for form in forms)


def test_what_is_chosen_is_faster_than_what_is_near() -> None:
    graph = separable()
    first, second, third, pooled, _ = (op.output for op in graph.operators)
    found = in_blocks(graph, needed(graph), core(), NOTHING)
    assert found == {first: 4, second: 4}
    least = total(graph, found)
    for name, pixels in ((first, 4), (second, 4), (third, 4), (pooled, 4)):
        turned = {**found, name: 0 if found.get(name) else pixels}
        assert total(graph, turned) >= least
    assert least < total(graph, {})


def test_what_lies_in_one_piece_stays() -> None:
    graph = separable()
    whole = frozenset([graph.operators[1].output])
    assert not whole & in_blocks(graph, needed(graph), core(), whole).keys()


def test_a_core_without_kernels_for_blocks_has_none() -> None:
    graph = separable()
    assert not in_blocks(graph, needed(graph), core("cortex-m0plus"), NOTHING)
