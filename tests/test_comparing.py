"""A failed comparison says what one needs to find the fault."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import Native, agrees, host
from tests.comparing import equal
from tests.graphs import Net


def test_a_wrong_sign_in_the_c(tmp_path: Path) -> None:
    net = Net((6, 6, 3), np.random.default_rng(0), name="chain")
    net.conv(4, (3, 3))
    net.dense(5)
    graph = net.graph()
    plan = Ordinary().plan(graph, host())
    files = generate(graph, plan, host(), {})
    assert agrees(Native(tmp_path / "right", graph, plan, files=files))
    wrong = files["model.c"].replace("nn_scaled(sum + nn_dense1", "nn_scaled(sum - nn_dense1")
    native = Native(tmp_path / "wrong", graph, plan, files={**files, "model.c": wrong})
    with pytest.raises(AssertionError) as failed:
        agrees(native)
    first, about, again = str(failed.value).splitlines()
    assert re.fullmatch(r"\d+ of 30 elements differ, first at .*: expected -?\d+, got -?\d+", first)
    assert about == (
        f"layer dense1, tensor {graph.output}, strategy ordinary, board host, "
        f"C {tmp_path}/wrong/model.c"
    )
    assert again.endswith("tests/test_comparing.py::test_a_wrong_sign_in_the_c")


def test_of_another_shape() -> None:
    with pytest.raises(AssertionError, match=r"shape \(2, 3\) expected, got \(3, 2\)"):
        equal(np.zeros((3, 2)), np.zeros((2, 3)))
    equal(np.zeros(3), [0, 0, 0])
