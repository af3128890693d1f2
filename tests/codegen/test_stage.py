"""Stages generate and package as the runner calls them: processes in a workspace."""

import json
import os
import sys
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline import board, ihex
from pipeline.codegen.options import Options
from pipeline.config import instantiate
from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.packages.library import library
from pipeline.plan import proof, serialize
from pipeline.runner.job import resolved
from pipeline.runner.schema import composed
from tests.codegen.card.support import planned
from tests.runner import parent
from tests.strategies.chains import mnist
from tests.strategies.swap.nets import board as swaps
from tests.strategies.swap.nets import random_chain
from tests.targets.conftest import needs_avr
from tests.tiers import quick


def workspace(folder: Path, *words: str) -> dict[str, Any]:
    config = resolved(composed(*words))
    (folder / "params.yaml").write_text(yaml.safe_dump(config))
    graph = mnist().graph()
    graph.save(folder)
    plan = instantiate(config["strategy"]).plan(graph, board.hardware(config["hardware"]))
    serialize.save(plan, folder / "plan.json")
    proof.save(folder / "proof.json", proof.prove(plan, graph), plan, graph)
    return config


def stage(folder: Path, name: str, status: int = 0) -> str:
    """Run the stage, which ends with ``status``; return what it says."""
    command = [sys.executable, ROOT / "stages" / f"{name}.py"]
    done = parent.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == status, done.stderr
    return str(done.stderr)


def test_writes_a_whole_program_and_nothing_stale(tmp_path: Path) -> None:
    workspace(tmp_path)
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "stale.c").write_text("")
    stage(tmp_path, "generate")
    written = {file.name: file.read_text() for file in (tmp_path / "generated").iterdir()}
    assert {"model.h", "model.c", "nn_cells.h", "main.c"} <= set(written) - {"stale.c"}
    assert "stale.c" not in written and str(tmp_path) not in "".join(written.values())


@pytest.mark.ci
def test_parameters_to_be_sent_are_beside_the_program(tmp_path: Path) -> None:
    workspace(tmp_path, "hardware.weights_in=stream")
    stage(tmp_path, "generate")
    sent = ihex.flash_image(tmp_path / "generated" / "parameters.hex")
    header = (tmp_path / "generated" / "model.h").read_text()
    assert f"#define NN_PARAMETER_BYTES {len(sent)}\n" in header
    assert f"#define NN_PARAMETER_CRC 0x{zlib.crc32(sent):08X}\n" in header


@pytest.mark.parametrize(
    ("name", "said"),
    [("generate", "plan.json is damaged"), ("generate", "finish pooled"),
     pytest.param("package", "plan.json is damaged", marks=needs_avr)],
)  # fmt: skip
def test_a_damaged_plan_is_one_line(tmp_path: Path, name: str, said: str) -> None:
    """Or one that still loads, but whose pool's result overwrites sums that are not finished."""
    workspace(tmp_path, "package=arduino", "hardware.weights_in=flash")
    file = tmp_path / "plan.json"
    if said == "finish pooled":
        plan = serialize.load(file)
        sums = plan.buffer["pooled.sums"]
        over = replace(sums, map=replace(sums.map, base=0))
        changed = tuple(over if buffer is sums else buffer for buffer in plan.buffers)
        serialize.save(replace(plan, buffers=changed), file)
    else:
        file.write_text("{")
    told = stage(tmp_path, name, status=1)
    assert len(told.strip().splitlines()) == 1 and said in told
    assert not (tmp_path / "generated").exists()


def test_a_run_without_a_package_leaves_an_empty_folder(tmp_path: Path) -> None:
    """`dvc repro` in the project comes by."""
    workspace(tmp_path)
    stage(tmp_path, "package")
    assert not list((tmp_path / "package").iterdir())
    assert json.loads((tmp_path / "package.json").read_text()) == {}


@needs_avr
@pytest.mark.parametrize(
    ("more", "said"),
    quick(
        0, [((), "B for a sketch"), (("package.weights_in=sram",), "weights_in=flash leaves 1,5")]
    ),
    ids=["flash", "sram"],
)
def test_weights_are_where_the_package_says(
    more: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    """The run has them in SRAM; equal inputs give equal bytes."""
    words = ("package=arduino", "package.library=two digits", "codegen.prefix=kws", *more)
    config = workspace(tmp_path, *words)
    assert config["hardware"]["weights_in"] == "sram"
    first = b""
    for _ in range(2):
        stage(tmp_path, "package")
        found = json.loads((tmp_path / "package.json").read_text())["package"]
        assert found["kind"] == "arduino" and said in found["note"]
        written = tmp_path / found["file"]
        assert first in (b"", written.read_bytes())
        first = written.read_bytes()
    with zipfile.ZipFile(written) as archive:
        source = archive.read("two_digits/src/kws.c").decode()
    assert ("static uint8_t kws_conv1_window_weights" in source) == bool(more)


def test_a_network_that_swaps_is_one_line() -> None:
    graph = random_chain(9)
    with pytest.raises(ThimbleError, match="no driver for a card yet: try strategy=auto"):
        library(graph, planned(graph, 1 << 12), swaps(1 << 14), {}, Options(), "n", "1.0.0", "-Os")
