"""Rows lie in blocks where kernels read them so: portable code finds each of their elements by a
table in flash."""

from __future__ import annotations

import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.search.layouts import in_blocks
from pipeline.strategies.joint import Joint
from tests.strategies import nets
from tests.targets.cortex_m import board_named


def branches() -> Graph:
    """Convolutions whose best rows are in blocks, joined by what only portable code computes."""
    net = nets.Net((16, 16, 16))
    x = net.conv("input", 16, 3)
    parts = [net.conv(x, 16), net.conv(x, 16, 3), net.conv(net.conv(x, 8), 16, 3)]
    return net.graph(net.conv(net.concat(*parts), 16, 3))


def test_what_only_portable_code_reads_lies_in_pixels() -> None:
    graph, board = branches(), board_named("nucleo_f446re")
    joined = next(op for op in graph.operators if len(op.inputs) == 3)
    chosen = in_blocks(graph, graph.operators, board, frozenset({graph.output}))
    assert not chosen.keys() & {*joined.inputs, joined.output}
    text = generate(graph, Joint().plan(graph, board), board, {})["model.c"]
    assert "nn_torn[" not in text


@pytest.mark.parametrize("graph", [nets.ds_cnn((16,) * 3), nets.resnet8()], ids=["ds", "res"])
def test_all_others_lie_in_blocks(graph: Graph) -> None:
    board = board_named("nucleo_f446re")
    chosen = in_blocks(graph, graph.operators, board, frozenset({graph.output}))
    images = {op.output for op in graph.operators if len(graph.tensors[op.output].shape) == 3}
    assert chosen.keys() >= {name for name in images if graph.tensors[name].shape[0] > 1}
