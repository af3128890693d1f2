"""Stage generate as the runner calls it: a process in a workspace."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from pipeline import ihex
from pipeline.plan import proof, serialize
from pipeline.strategies.herringbone import Herringbone
from tests import boards
from tests.codegen.support import uno
from tests.strategies.chains import Chain

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    params = {
        "hardware": boards.node(),
        "codegen": {"prefix": "nn", "labels": []},
        "frontend": {"_target_": "pipeline.frontends.none.NoFrontend", "name": "none"},
        "sliding": {"windows": 1, "rows": 1},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params))
    graph = Chain((12, 12, 1), "uint8").average("p").conv("c", 3).dense("d", 2).graph()
    graph.save(tmp_path)
    plan = Herringbone("slots").plan(graph, uno())
    serialize.save(plan, tmp_path / "plan.json")
    proof.save(tmp_path / "proof.json", proof.prove(plan, graph), plan, graph)
    return tmp_path


def stage(workspace: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "stages" / "generate.py")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=workspace, env=env, capture_output=True, text=True)


def test_writes_a_whole_program_and_nothing_stale(workspace: Path) -> None:
    (workspace / "generated").mkdir()
    (workspace / "generated" / "stale.c").write_text("")
    done = stage(workspace)
    assert done.returncode == 0, done.stderr
    written = {file.name: file.read_text() for file in (workspace / "generated").iterdir()}
    assert {"model.h", "model.c", "nn_cells.h", "main.c"} <= set(written) - {"stale.c"}
    assert "stale.c" not in written and str(workspace) not in "".join(written.values())


@pytest.mark.ci
def test_parameters_to_be_sent_are_beside_the_program(workspace: Path) -> None:
    params = yaml.safe_load((workspace / "params.yaml").read_text())
    params["hardware"]["weights_in"] = "stream"
    (workspace / "params.yaml").write_text(yaml.safe_dump(params))
    assert stage(workspace).returncode == 0
    sent = ihex.flash_image(workspace / "generated" / "parameters.hex")
    header = (workspace / "generated" / "model.h").read_text()
    assert f"#define NN_PARAMETER_BYTES {len(sent)}\n" in header
    assert f"#define NN_PARAMETER_CRC 0x{zlib.crc32(sent):08X}\n" in header


@pytest.mark.parametrize("said", ["plan.json is damaged", "finish p"])
def test_a_damaged_plan_is_one_line(workspace: Path, said: str) -> None:
    """Or one that still loads, but whose pool's result overwrites sums that are not finished."""
    file = workspace / "plan.json"
    if said == "finish p":
        plan = serialize.load(file)
        sums = plan.buffer["p.sums"]
        over = replace(sums, map=replace(sums.map, base=0))
        changed = tuple(over if buffer is sums else buffer for buffer in plan.buffers)
        serialize.save(replace(plan, buffers=changed), file)
    else:
        file.write_text("{")
    done = stage(workspace)
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1 and said in done.stderr
    assert not (workspace / "generated").exists()
