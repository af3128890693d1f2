"""Runs reach MLflow: all of them, once, with what repeats them; jobs under their sweep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.runner.project import Project, clean_environment
from tests.waiting import until

READ = """
import json, sys
from pipeline.tracking.store import EXPERIMENT, uri
from pathlib import Path
from mlflow import MlflowClient

folder = Path(sys.argv[1])
client = MlflowClient(uri(folder))
experiment = client.get_experiment_by_name(EXPERIMENT)
print(json.dumps([
    {
        "id": run.info.run_id,
        "status": run.info.status,
        "params": run.data.params,
        "metrics": run.data.metrics,
        "tags": run.data.tags,
        "artifacts": [a.path for a in client.list_artifacts(run.info.run_id)],
        "uri": run.info.artifact_uri,
    }
    for run in client.search_runs([experiment.experiment_id])
]))
"""


def runs(project: Project) -> list[dict[str, Any]]:
    """What MLflow knows, read in a process of its own: importing it here would be slow."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(project.root / ".thimble" / "tracking")],
        cwd=project.root,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def spooled(project: Project) -> list[Path]:
    return list((project.root / ".thimble" / "tracking" / "spool").glob("*.json"))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "project")
    yield made
    until(lambda: not trackers(made.root))  # nothing of a test outlives it


def test_a_run_is_tracked_with_all_that_repeats_it(project: Project) -> None:
    result = project.run("output=json", "tracking=wait", "target.images=5").json
    (run,) = runs(project)
    assert run["status"] == "FINISHED" and run["tags"]["thimble.status"] == "ok"
    assert run["metrics"]["pmu_bytes"] == 400 and run["metrics"]["cycles"] == 5
    assert run["params"]["target.images"] == "5"
    assert run["params"]["strategy._target_"] == "pipeline.strategies.small.Small"
    assert {"params.yaml", "dvc.lock", "plan.json", "generated", "versions.yaml"} <= set(
        run["artifacts"]
    )
    assert run["tags"]["thimble.run_dir"] == result["run_dir"]
    assert run["uri"].startswith(f"file://{project.root}/.thimble/tracking/artifacts/")
    assert not spooled(project)
    assert not list(project.root.glob("mlruns*")) and not list(project.root.glob("*.db"))


@pytest.mark.ci
def test_every_parameter_and_version_is_tracked(project: Project) -> None:
    named = "".join(f"    field_{number:03}: int = 0\n" for number in range(250))
    small = project.root / "pipeline/strategies/small.py"
    small.write_text(small.read_text().replace("    pmu_bytes", f"{named}    pmu_bytes", 1))
    option = project.root / "conf/strategy/herringbone.yaml"
    given = "".join(f"field_{number:03}: {number}\n" for number in range(250))
    option.write_text(option.read_text() + given)
    assert project.run("tracking=wait", "until=fetch").code == 0
    (run,) = runs(project)
    expected = {f"strategy.field_{number:03}": str(number) for number in range(250)}
    assert expected.items() <= run["params"].items()
    assert run["params"]["target.images"] == "7", "the last group"
    folder = Path(run["tags"]["thimble.run_dir"])
    versions = yaml.safe_load((folder / "versions.yaml").read_text())
    assert versions["host"] and versions.keys() >= {"compiler", "simulator", "torch"}
    tracked = {k: v for k, v in run["params"].items() if k.startswith("versions.")}
    assert tracked == {f"versions.{name}": version for name, version in versions.items()}
    assert "code_version" not in run["tags"], "no git checkout"


@pytest.mark.ci
def test_the_code_of_a_run_is_tracked(project: Project) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
        command = ["git", *identity, *words]
        return subprocess.run(
            command, cwd=project.root, env=clean_environment(), capture_output=True, text=True,
            check=True,
        ).stdout.strip()  # fmt: skip

    git("init", "-q")
    git("add", "run.py", "dvc.yaml", "conf", "pipeline", "stages", "firmware")
    git("commit", "-q", "-m", "All")
    project.run("tracking=wait", "until=fetch", "seed=1")
    project.write("pipeline/strategies/another.py", "")
    project.run("-m", "tracking=wait", "until=fetch", "seed=2,3")
    found = runs(project)
    assert {run["tags"]["code_version"] for run in found} == {git("rev-parse", "HEAD")}
    dirty = {run["params"].get("seed", "sweep"): run["tags"]["code_dirty"] for run in found}
    assert dirty == {"1": "false", "2": "true", "3": "true", "sweep": "true"}


@pytest.mark.ci
def test_failures_and_results_that_do_not_fit_are_tracked(project: Project) -> None:
    assert project.run("strategy=naive", "tracking=wait").code == 3
    project.env["FAKE_ACT"] = "build:fail"
    assert project.run("tracking=wait").code == 1
    found = {run["tags"]["thimble.status"]: run for run in runs(project)}
    assert found["infeasible"]["status"] == "FINISHED"
    assert found["infeasible"]["metrics"]["pmu_bytes"] == 3000
    assert found["failed"]["status"] == "FAILED"


def test_jobs_are_nested_in_their_sweep(project: Project) -> None:
    result = project.run("-m", "output=json", "strategy=naive,herringbone", "tracking=wait").json
    found = runs(project)
    (parent,) = [run for run in found if "mlflow.parentRunId" not in run["tags"]]
    jobs = [run for run in found if run is not parent]
    assert len(jobs) == 2
    assert {run["tags"]["mlflow.parentRunId"] for run in jobs} == {parent["id"]}
    assert parent["tags"]["thimble.run_dir"] == result["run_dir"]
    assert "result.json" in parent["artifacts"]


@pytest.mark.ci
def test_six_processes_on_an_absent_database(project: Project) -> None:
    processes = [project.start("tracking=wait", f"target.images={n}") for n in range(6)]
    for process in processes:
        _, err = process.communicate()
        assert process.returncode == 0, err
    found = runs(project)
    assert sorted(run["params"]["target.images"] for run in found) == list("012345")
    assert not spooled(project)


@pytest.mark.ci
def test_six_concurrent_jobs_of_a_cold_sweep(project: Project) -> None:
    """They train once, end with one network, and are nested under one parent in a new database."""
    project.hold("train")
    images = "target.images=0,1,2,3,4,5"
    side_by_side = ("hydra/launcher=local", "hydra.launcher.n_jobs=6")
    process = project.start("-m", "output=json", "tracking=wait", images, *side_by_side)
    until(lambda: len(list((project.root / "multirun").rglob("params.yaml"))) == 6)
    project.release("train")
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert project.ran().count("train") == 1
    folders = [Path(job["run_dir"]) for job in json.loads(out)["jobs"]]
    assert len(folders) == 6 and len({(f / "weights.npz").read_bytes() for f in folders}) == 1
    begun = [(folder / "params.yaml").stat().st_mtime for folder in folders]
    ended = [(folder / "result.json").stat().st_mtime for folder in folders]
    assert max(begun) < min(ended), "not one after the other"
    found = runs(project)
    (parent,) = [run for run in found if "mlflow.parentRunId" not in run["tags"]]
    jobs = [run for run in found if run is not parent]
    assert sorted(run["params"]["target.images"] for run in jobs) == list("012345")
    assert {run["tags"]["mlflow.parentRunId"] for run in jobs} == {parent["id"]}
    assert {run["status"] for run in found} == {"FINISHED"} and not spooled(project)


@pytest.mark.ci
def test_a_run_whose_tracking_was_killed_is_logged_by_the_next(project: Project) -> None:
    from filelock import FileLock

    (project.root / ".thimble" / "locks").mkdir(parents=True)
    with FileLock(str(project.root / ".thimble" / "locks" / "tracking.lock")):
        assert project.run("tracking=background").code == 0
        (entry,) = spooled(project)
        for pid in trackers(project.root):
            os.kill(pid, 9)
    assert entry.exists()
    project.run("tracking=wait")
    assert len(runs(project)) == 2 and not spooled(project)


def trackers(root: Path) -> list[int]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            if b"pipeline.tracking" in words and (place / "cwd").readlink() == root:
                found.append(int(place.name))
        except OSError:
            continue
    return found


@pytest.mark.ci
def test_logging_an_entry_twice_makes_one_run(project: Project) -> None:
    project.run("tracking=background")
    spool = project.root / ".thimble" / "tracking" / "spool"
    (path,) = spooled(project) or [None]
    content = path.read_text() if path else ""
    until(lambda: not spooled(project))
    if path:
        (spool / path.name).write_text(content)
    project.run("tracking=wait", "until=fetch")
    assert len(runs(project)) == 2
