"""What kernels for an AVR accept, and which bytes of a row they read before they write which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.graph.requant import FixedPoint
from pipeline.kernels import Form, choose, named, offers
from pipeline.kernels.avr import KERNELS, Convolution, Depthwise, has_assembly
from pipeline.kernels.avr.rows import AvrRows
from pipeline.search.layouts import form_of_a_row
from tests.codegen.avr.test_layers import MEGA, OWN, chosen, layers, least_zero
from tests.graphs import Net
from tests.kernels.test_turns import allowed, conflicts
from tests.targets.conftest import load_hardware


def one(net: Net) -> Form:
    graph = net.graph()
    return Form.whole(graph.operators[-1], graph)


def test_they_are_for_weights_in_flash() -> None:
    assert has_assembly(MEGA)
    assert not has_assembly(load_hardware("arduino_mega", weights_in="sram"))
    assert not has_assembly(replace(MEGA, kernels="portable"))
    assert not has_assembly(load_hardware("nucleo_f446re"))


@pytest.mark.parametrize("seed", range(6))
def test_the_fastest_are_chosen_and_each_name_is_one(seed: int) -> None:
    graph = layers(seed)
    assert set(chosen(graph)) == OWN
    for op in graph.operators:
        form = Form.whole(op, graph)
        found = choose(form, MEGA)
        assert named(found.name, form, MEGA) == found
        assert found.cycles(form) < offers(form, MEGA)[1].cycles(form)
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


def test_padding_of_another_zero_point_is_portable() -> None:
    net = Net((5, 5, 3), np.random.default_rng(0))
    net.conv(4, (1, 1))
    net.depthwise()
    assert choose(one(net), MEGA).name == "int8.conv2d"
    assert "zero point" in Depthwise().why_not(one(net))


@pytest.mark.parametrize("scale, fits", [(2.0**-8, True), (2.0**-19, False)])
def test_sums_have_24_bits(scale: float, fits: bool) -> None:
    net = Net((2, 2, 600), np.random.default_rng(0))
    net.conv(3, (1, 1), requant=FixedPoint.of(np.full(3, scale)))
    assert Convolution().accepts(one(net)) == fits


def test_sums_beyond_24_bits_are_portable() -> None:
    net = Net((1, 1, 1020), np.random.default_rng(0))
    net.conv(2, (1, 1))
    graph = net.graph()
    weights = {
        name: np.full_like(v, 127) if v.ndim == 4 else v for name, v in graph.constants.items()
    }
    large = replace(graph, constants=weights)
    assert "24 bits" in Convolution().why_not(Form.whole(large.operators[0], large))


def of_a_row(kind: str, columns: int) -> tuple[Graph, AvrRows]:
    net = Net((4, columns, 3), np.random.default_rng(columns))
    least_zero(net)
    net.tensors["image"] = replace(net.tensors["image"], zero_point=-128)
    if kind == "depthwise":
        net.depthwise()
        return net.graph(), Depthwise()
    net.conv(3, (1, 1) if kind == "pointwise" else (3, 3))
    return net.graph(), Convolution()


@pytest.mark.parametrize("kind", ["pointwise", "window", "depthwise"])
@pytest.mark.parametrize("columns", [2, 5, 6, 7, 13])
def test_a_row_over_what_it_is_made_of(kind: str, columns: int) -> None:
    graph, kernel = of_a_row(kind, columns)
    form = form_of_a_row(graph.operators[0], graph, {})
    turns = kernel.turns(form)
    assert not any(conflicts(turns, apart) for apart in allowed(turns))
    parts = kernel.parts(form)
    assert [p.first for p in parts] == [0, *(p.stop for p in parts[:-1])]
    assert parts[-1].stop == columns and max(p.pixels for p in parts) <= kernel.most_pixels
    exactly = kind == "pointwise" or len(parts) == 1
    assert turns.exactly == exactly
    gap = kernel.overlap(form, "image")
    assert gap is not None and (0 in gap.at or gap.forwards >= 0) == exactly
    whole = Form.whole(graph.operators[0], graph)
    assert kernel.accepts(whole) and kernel.overlap(whole, "image") is None
