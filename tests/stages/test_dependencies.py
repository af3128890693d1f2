"""Dependencies of stages are what dvc.yaml says; fresh clones: DVC in them, equal bytes."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from pipeline.home import PACKAGE, ROOT, STAGES
from pipeline.runner import code, deps
from pipeline.runner.schema import CODE_GROUPS
from pipeline.tracking.checkout import recorded as origin
from tests.programs import git, said
from tests.runner import parent
from tests.runner.project import clean_environment
from tests.runner.test_kills import outputs
from tests.stages.conftest import SMALL, Project

FILES = ("run.py", "dvc.yaml", "params.yaml", ".dvcignore", ".gitignore")
FOLDERS = ("conf", "stages", "pipeline", "firmware", ".dvc")


def cloned(folder: Path, small: Project | None = None) -> Path:
    """Copy the project, with what ``small`` has in its cache."""
    clone = folder / "clone"
    clone.mkdir(parents=True)
    for name in FILES:
        shutil.copy(ROOT / name, clone / name)
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "tmp", "cache", "config.local")
        shutil.copytree(ROOT / name, clone / name, ignore=ignored)
    for name in ("cache", "notes") if small else ():  # what tests that ran before have made
        kept = small.folder / "home" / name
        if kept.is_dir():
            shutil.copytree(kept, clone / ".thimble" / name)
    for words in ("init -q", "add -A", "commit -qm all"):
        git(clone, *words.split())
    return clone


def dvc(clone: Path, *words: str) -> str:
    """Return what ``dvc`` says on standard output."""
    return said([sys.executable, "-m", "dvc", *words], clone, env=clean())


def clean() -> dict[str, str]:
    """The environment of a user with this Python."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**clean_environment(), "PATH": path}


DVC = code.stages()


def test_parameters_are_current_and_data_flow_forward() -> None:
    assert deps.default_params(ROOT) == (ROOT / "params.yaml").read_text(), "run `make deps`"
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


@pytest.mark.parametrize("group", CODE_GROUPS)
def test_every_field_of_a_class_is_a_parameter(group: str) -> None:
    """Track a group as a whole, for one's own class too, whose fields are in no list."""
    using = [stage for stage in DVC.values() if group in stage.get("meta", {}).get("targets", ())]
    assert using and all(group in stage["params"] for stage in using)


@pytest.mark.ci
def test_what_stages_really_import_and_read_is_listed(small: Project) -> None:
    result = small.run("package=cmake")
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
    said(recorder, env=env)
    found = {s: json.loads((copy / "recorded.json").read_text()) for s, copy in copies.items()}
    for copy in copies.values():
        shutil.rmtree(copy)
    return found


@pytest.mark.ci
def test_dvc_repro_in_the_project_is_a_pure_hit(small: Project, tmp_path: Path) -> None:
    """In a copy of the project, so that this clone stays as it is."""
    small.run()  # else the clone has to make it
    clone = cloned(tmp_path, small)
    run = parent.run([sys.executable, "run.py", *SMALL], kind="made up", cwd=clone, env=clean())
    assert run.returncode == 0, run.stderr
    folder = Path(json.loads(run.stdout)["run_dir"])
    shutil.copy(folder / "params.yaml", clone / "params.yaml")
    lines = dvc(clone, "repro").splitlines()
    stages = [line.split("'")[1] for line in lines if "skipping" in line]
    assert [name for name in stages if name != "code"] == list(STAGES), lines
    assert (clone / "metrics.json").read_bytes() == (folder / "metrics.json").read_bytes()


EPOCHS = tuple(f"train.{name}_epochs=2" for name in ("float", "quantized", "frozen"))
RECIPES = {
    "quick": EPOCHS,
    "paper": (*EPOCHS, "train.trials=[2,1,1]", "train.teacher_epochs=1", "train.copies=1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_two_fresh_clones_give_the_same_bytes(tmp_path: Path, recipe: str) -> None:
    """Weights, plan, C, ELF and the rest, though path, cache, home, locale, time zone, umask and
    hash seed differ. Training is the real recipe in small, every phase, every distortion."""
    if not shutil.which("avr-gcc"):
        pytest.skip("needs avr-gcc: make setup")
    here = {"LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "1", "HOME": str(tmp_path)}
    there = {"LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu", "PYTHONHASHSEED": "2"}
    there |= {"COLUMNS": "40", "THIMBLE_HOME": str(tmp_path / "a home elsewhere")}
    words = [sys.executable, "run.py", *SMALL, f"train={recipe}", *RECIPES[recipe]]
    runs = []
    for place, umask, env in (("one", 0o022, here), ("at another place", 0o077, there)):
        clone, env = cloned(tmp_path / place), {**clean_environment(), **env}
        result = json.loads(said(words, clone, env=env, umask=umask))
        assert not any(stage["cached"] for stage in result["stages"].values())
        runs.append(Path(result["run_dir"]))
    one, two = runs
    found = outputs(one)
    assert outputs(two) == found
    assert {"weights.npz", "plan.json", "generated/model.c", "build/firmware.elf"} <= set(found)
    assert set(found["dvc.lock"]) == set(STAGES)
    assert origin(two)["made"] == origin(one)["made"]
    for path in (one / "generated").rglob("*.[ch]"):
        assert not any(str(place) in path.read_text() for place in (tmp_path, ROOT)), path
