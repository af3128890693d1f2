"""A failed comparison says what one needs to find the fault."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.home import ROOT
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import stepped
from tests.codegen import support
from tests.codegen.int8.support import Native, agrees, host
from tests.graphs import Net
from tests.programs import ran


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


FAILS = """
import subprocess
from pipeline.plan.verify import verify
from pipeline.home import ROOT
from pipeline.strategies.ordinary import Ordinary
from tests.boards import load_hardware
from tests.strategies.chains import Chain
from dataclasses import replace

def test_a_proof():
    for seed in range(3):
        graph, board = Chain((6, 6, 2), seed=seed).conv("a", 3).graph(), load_hardware("arduino")
        plan = Ordinary().plan(graph, board)
        if seed == 1:
            plan = replace(plan, tracks=())
        verify(plan, graph)

def test_a_compiler():
    source = b"int main(void) { return nowhere; }"
    subprocess.run(["cc", "-xc", "-"], input=source, check=True, capture_output=True)
"""


def test_any_failure_says_its_seed_strategy_and_board(tmp_path: Path) -> None:
    lines = ("from pathlib import Path", "from tests import explained")
    lines += ("explained.ROOT = Path(__file__).parent", "from tests.explained import *", "")
    (tmp_path / "conftest.py").write_text("\n".join(lines))
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text(FAILS)
    command = [sys.executable, "-m", "pytest", f"--rootdir={tmp_path}", "--config-file=/dev/null"]
    done = ran(command, tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    said = done.stdout.partition("what this case is about")[2]
    assert "seed 1\n" in said and "strategy ordinary of chain" in said, done.stdout
    assert "board arduino (avr, atmega328p)" in said and "graph chain of 1 operators" in said
    assert "again: python -m pytest -m '' tests/test_x.py::test_a_proof" in said
    assert "nowhere" in said.partition("what this case is about")[2]  # the compiler's own words
