"""What a stage depends on is what dvc.yaml says: code, config and data, no more and no less."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.home import PACKAGE, ROOT, STAGES
from pipeline.runner import code, deps
from pipeline.runner.schema import CODE_GROUPS
from tests.runner import parent
from tests.stages.clones import clean, cloned
from tests.stages.conftest import Project

DVC = code.stages()


def test_params_yaml_is_the_default_composition() -> None:
    assert deps.default_params(ROOT) == (ROOT / "params.yaml").read_text(), "run `make deps`"


@pytest.mark.parametrize("group", CODE_GROUPS)
def test_every_field_of_a_class_is_a_parameter(group: str) -> None:
    """Of one's own class too: its fields are in no list."""
    using = [stage for stage in DVC.values() if group in stage.get("meta", {}).get("targets", ())]
    assert using and all(group in stage["params"] for stage in using)


def test_data_flows_forward_and_outputs_do_not_overlap() -> None:
    made: list[str] = []
    assert [name for name, stage in DVC.items() if "strategy" in stage.get("params", ())] == [
        "schedule", PACKAGE
    ]  # fmt: skip
    for name, stage in DVC.items():
        hardware = any(str(key).startswith("hardware") for key in stage.get("params", ()))
        assert hardware == (name in (*STAGES[4:], PACKAGE)), "another board does not train again"
        data = set(stage.get("deps", ()))
        assert data <= set(made), f"{data - set(made)} is read before it is made"
        for out in stage["outs"]:
            assert not any(f"{out}/".startswith(f"{other}/") for other in made)
            assert not any(f"{other}/".startswith(f"{out}/") for other in made)
            made.append(out)


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param("herringbone", marks=pytest.mark.ci),
        pytest.param("single_transpose", marks=pytest.mark.slow),
    ],
)
def test_what_stages_really_import_and_read_is_listed(small: Project, strategy: str) -> None:
    result = small.run(f"strategy={strategy}", "package=cmake")
    folder = Path(result["run_dir"])
    for stage, found in recorded(small, folder).items():
        listed = json.loads((folder / "code.json").read_text())[stage]["files"].keys()
        imported = {f for f in found["imported"] if f.startswith(("pipeline/", "stages/"))}
        assert imported and imported <= listed, (stage, imported - listed)
        keys = [key for key in DVC[stage]["params"] if isinstance(key, str)]
        unlisted = [
            r for r in found["read"] if not any(r == k or r.startswith(f"{k}.") for k in keys)
        ]
        assert not unlisted, f"{stage} reads {unlisted}, which dvc.yaml does not list"


def recorded(small: Project, folder: Path) -> dict[str, dict[str, list[str]]]:
    """Run each stage again in a copy of a finished workspace: files imported, config keys read."""
    copies = {stage: small.folder / f"copy-{os.getpid()}-{stage}" for stage in (*STAGES, PACKAGE)}
    for stage, copy in copies.items():
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".dvc", ".hydra"))
        for out in DVC[stage]["outs"]:
            path = copy / out
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    words = [f"{copy}={stage}" for stage, copy in copies.items()]
    env = {**small.env, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    recorder = [sys.executable, str(ROOT / "tests" / "stages" / "recorder.py"), *words]
    done = subprocess.run(recorder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {s: json.loads((copy / "recorded.json").read_text()) for s, copy in copies.items()}
    for copy in copies.values():
        shutil.rmtree(copy)
    return found


@pytest.mark.ci
def test_dvc_repro_in_the_project_is_a_pure_hit(small: Project, tmp_path: Path) -> None:
    """In a copy of the project, so that this clone stays as it is."""
    small.run()  # else the clone has to make it
    clone = cloned(small, tmp_path)
    words = ("data=synthetic", "train=smoke", "target.images=3", "output=json", "tracking=none")
    run = parent.run([sys.executable, "run.py", *words], kind="made up", cwd=clone, env=clean())
    assert run.returncode == 0, run.stderr
    folder = Path(json.loads(run.stdout)["run_dir"])
    shutil.copy(folder / "params.yaml", clone / "params.yaml")
    dvc = [sys.executable, "-m", "dvc", "repro"]
    done = subprocess.run(dvc, cwd=clone, env=clean(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    stages = [line.split("'")[1] for line in done.stdout.splitlines() if "skipping" in line]
    assert [name for name in stages if name != "code"] == list(STAGES), done.stdout
    assert (clone / "metrics.json").read_bytes() == (folder / "metrics.json").read_bytes()
