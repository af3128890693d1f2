"""Stage package as the runner calls it: a process in a workspace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline import board
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


def stage(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "stages" / "package.py"]
    return parent.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_a_run_without_one_leaves_an_empty_folder(tmp_path: Path) -> None:
    """`dvc repro` in the project comes by."""
    workspace(tmp_path)
    done = stage(tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "package").iterdir())
    assert json.loads((tmp_path / "package.json").read_text()) == {}


@needs_avr
@pytest.mark.parametrize(
    ("more", "said"),
    quick(
        1, [((), "B for a sketch"), (("package.weights_in=sram",), "weights_in=flash leaves 1,5")]
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
        done = stage(tmp_path)
        assert done.returncode == 0, done.stderr
        found = json.loads((tmp_path / "package.json").read_text())["package"]
        assert found["kind"] == "arduino" and said in found["note"]
        written = tmp_path / found["file"]
        assert first in (b"", written.read_bytes())
        first = written.read_bytes()
    with zipfile.ZipFile(written) as archive:
        source = archive.read("two_digits/src/kws.c").decode()
    assert ("static uint8_t kws_weights_conv1" in source) == bool(more)


@needs_avr
def test_an_altered_plan_is_one_line(tmp_path: Path) -> None:
    workspace(tmp_path, "package=arduino", "hardware.weights_in=flash")
    (tmp_path / "plan.json").write_text("{")
    done = stage(tmp_path)
    assert done.returncode == 1 and "plan.json is damaged" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_network_that_swaps_is_one_line() -> None:
    graph = random_chain(9)
    with pytest.raises(ThimbleError, match="no driver for a card yet: try strategy=auto"):
        library(graph, planned(graph, 1 << 12), swaps(1 << 14), {}, Options(), "n", "1.0.0", "-Os")
