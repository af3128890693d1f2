"""How rows lie: in blocks where kernels are faster so."""

from __future__ import annotations

import numpy as np

from pipeline.graph.graph import Graph
from pipeline.schedules.lower import needed
from pipeline.search.layouts import cycles_of_rows, in_blocks
from tests.codegen.cortex_m.support import core
from tests.graphs import Net

NOTHING = frozenset[str]()


def network() -> Graph:
    """Depthwise-separable, then a pooling with windows, which has no kernel for blocks."""
    net = Net((12, 14, 3), np.random.default_rng(0))
    net.conv(8, (3, 3))
    net.depthwise((3, 3))
    net.conv(16, (1, 1))
    net.maximum((2, 2), stride=(2, 2))
    net.dense(4)
    return net.graph()


def total(graph: Graph, layout: dict[str, int]) -> float:
    return sum(cycles_of_rows(op, graph, core(), layout) for op in graph.operators)


def test_what_is_chosen_is_faster_than_what_is_near() -> None:
    graph = network()
    first, second, third, pooled, _ = (op.output for op in graph.operators)
    found = in_blocks(graph, needed(graph), core(), NOTHING)
    assert found == {first: 4, second: 4}
    least = total(graph, found)
    for name, pixels in ((first, 4), (second, 4), (third, 4), (pooled, 4)):
        turned = {**found, name: 0 if found.get(name) else pixels}
        assert total(graph, turned) >= least
    assert least < total(graph, {})


def test_what_lies_in_one_piece_stays() -> None:
    graph = network()
    whole = frozenset([graph.operators[1].output])
    assert not whole & in_blocks(graph, needed(graph), core(), whole).keys()


def test_a_core_without_kernels_for_blocks_has_none() -> None:
    graph = network()
    assert not in_blocks(graph, needed(graph), core("cortex-m0plus"), NOTHING)
