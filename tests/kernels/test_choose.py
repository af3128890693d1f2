"""Which kernel a board offers for which form, and what it asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.kernels import Form, choose, named, offers
from pipeline.kernels.choose import block_pixels
from tests.codegen.cortex_m.support import core
from tests.graphs import Net


def network() -> Graph:
    net = Net((8, 8, 8), name="net")
    net.conv(8, (3, 3))
    net.depthwise((3, 3))
    net.dense(10)
    return net.graph()


def forms(graph: Graph) -> dict[str, Form]:
    return {op.name: Form.whole(op, graph) for op in graph.operators}


def test_the_fastest_that_accepts_is_chosen() -> None:
    found = {name: choose(form, core()).name for name, form in forms(network()).items()}
    assert found == {
        "conv0": "cortex_m.conv2d",
        "conv1": "cortex_m.depthwise",
        "dense2": "cortex_m.dense",
    }
    found = {name: choose(f, core("cortex-m0plus")).name for name, f in forms(network()).items()}
    assert found == {
        "conv0": "thumb.conv2d",
        "conv1": "thumb.depthwise",
        "dense2": "thumb.dense",
    }


def test_kernels_of_the_cores_own_may_be_left_out() -> None:
    small = replace(core(), kernels="portable")
    for hardware in (small, replace(small, cpu="cortex-m0plus")):
        found = {choose(form, hardware).name for form in forms(network()).values()}
        assert found == {"int8.conv2d", "int8.dense"}
    assert block_pixels(small, 8) == 0 < block_pixels(core(), 8)
    with pytest.raises(ThimbleError, match=r"this board has no kernel cortex_m\.conv2d"):
        named("cortex_m.conv2d", forms(network())["conv0"], small)


def test_without_scratch_it_is_the_portable_one() -> None:
    form = forms(network())["conv0"]
    assert [kernel.name for kernel in offers(form, core())] == ["cortex_m.conv2d", "int8.conv2d"]
    assert choose(form, core()).scratch_bytes(form) == 4 * 72 * 2
    assert choose(form, core(), scratch=False).name == "int8.conv2d"
    assert choose(form, core(), scratch=False).scratch_bytes(form) == 0


def test_a_name_that_a_board_lacks_is_refused() -> None:
    form = forms(network())["conv0"]
    assert named("int8.conv2d", form, core("cortex-m0plus")).accepts(form)
    with pytest.raises(ThimbleError, match=r"conv0: this board has no kernel cortex_m\.conv2d"):
        named("cortex_m.conv2d", form, core("cortex-m0plus"))
