"""A failed comparison says what one needs to find the fault."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import stepped
from tests.codegen import support
from tests.codegen.int8.support import Native, agrees, host
from tests.graphs import Net


def broken(monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    """Let generated C be what ``change`` makes of it from now on."""
    for module in (support, stepped):
        monkeypatch.setattr(
            module,
            "generate",
            lambda *args: (made := generate(*args)) | {"model.c": change(made["model.c"])},
        )


def test_a_wrong_sign_in_the_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Net((6, 6, 3), np.random.default_rng(0), name="chain")
    net.conv(4, (3, 3))
    net.dense(5)
    graph = net.graph()
    plan = Ordinary().plan(graph, host())
    assert agrees(Native(tmp_path / "right", graph, plan))
    old, new = "nn_scaled(sum + nn_dense1", "nn_scaled(sum - nn_dense1"
    broken(monkeypatch, lambda text: text.replace(old, new))
    native = Native(tmp_path / "wrong", graph, plan)
    with pytest.raises(AssertionError) as failed:
        agrees(native)
    first, begins, about = str(failed.value).splitlines()
    assert re.fullmatch(r"\d+ of 30 elements differ, first at .*: expected -?\d+, got -?\d+", first)
    said = r"image 0: compute dense1 by nn_dense1 of model.c writes \d of 5 elements .* dense1\["
    assert re.match(said, begins)
    assert about == (
        f"layer dense1, tensor {graph.output}, strategy ordinary, board host, "
        f"C {tmp_path}/wrong/model.c"
    )
