"""Runs reach MLflow: all of them, once, with what repeats them; jobs under their sweep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
import yaml

from pipeline.home import ROOT
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
        "history": {
            key: [(one.step, one.value) for one in client.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
        },
        "artifacts": [a.path for a in client.list_artifacts(run.info.run_id)],
        "uri": run.info.artifact_uri,
        "experiment": experiment.tags,
    }
    for run in client.search_runs([experiment.experiment_id])
]))
"""


def runs(project: Project) -> list[dict[str, Any]]:
    """What MLflow knows of the runs of ``project``."""
    return read_runs(project.root / ".thimble" / "tracking")


def read_runs(folder: Path) -> list[dict[str, Any]]:
    """What the database in ``folder`` holds, read in a process of its own: importing MLflow here
    would be slow."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder)],
        cwd=ROOT,
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
    assert run["params"]["strategy.name"] == "herringbone"
    assert {"params.yaml", "dvc.lock", "plan.json", "generated", "versions.yaml"} <= set(
        run["artifacts"]
    )
    assert run["tags"]["thimble.run_dir"] == result["run_dir"]
    assert run["uri"].startswith(f"file://{project.root}/.thimble/tracking/artifacts/")
    assert not spooled(project)
    assert not list(project.root.glob("mlruns*")) and not list(project.root.glob("*.db"))


@pytest.mark.ci
def test_runs_are_called_by_what_was_chosen(project: Project) -> None:
    """And say what they were told to do, where they are from, and what they lack."""
    assert project.run("tracking=wait", "until=schedule", "hardware=big").code == 0
    sweep = ("-m", "strategy=naive,herringbone", "target.images=1,2", "until=schedule")
    assert project.run(*sweep, "tracking=wait").code == 0
    found = {run["tags"]["mlflow.runName"]: run for run in runs(project)}
    names = [f"mnist_2kb · arduino · {s} · target.images={n}" for s in STRATEGIES for n in (1, 2)]
    swept = "strategy=naive,herringbone · target.images=1,2 · 4 jobs"
    assert set(found) == {"mnist_2kb · big · herringbone", swept, *names}
    one, parent = found["mnist_2kb · big · herringbone"], found[swept]
    reason = "nothing executed: until=schedule"
    assert one["tags"]["missing.energy_uj"] == one["tags"]["missing.accuracy_int"] == reason
    assert one["tags"]["missing.sram_bytes"] == "nothing built: until=schedule"
    assert "missing.pmu_bytes" not in one["tags"] and one["metrics"]["pmu_bytes"] == 400
    command, *lacks = one["tags"]["mlflow.note.content"].splitlines()
    assert command == "`python run.py until=schedule hardware=big`"
    assert f"- no energy_uj: {reason}" in lacks
    assert parent["tags"]["mlflow.note.content"].startswith("`python run.py -m strategy=naive,")
    assert not [key for key in parent["tags"] if key.startswith("missing.")], "its jobs say it"
    assert {run["tags"]["mlflow.source.name"] for run in found.values()} == {"run.py"}
    page = "#/experiments/1/runs?workflowType=machine_learning"
    assert page in one["experiment"]["mlflow.note.content"], "MLflow opens on another page"
    naive = found["mnist_2kb · arduino · naive · target.images=1"]
    reason = "does not fit: SRAM needs 3000 B of 2048 B"
    assert naive["tags"]["missing.latency_us"] == reason


STRATEGIES = ("naive", "herringbone")


@pytest.mark.ci
def test_a_boards_constants_are_an_artifact(project: Project) -> None:
    """Parameters are what was chosen of it, or set; the others would fill the screen."""
    override = ("hardware.sram_bytes=4096", "hardware.stack_reserve_bytes=50")
    assert project.run("tracking=wait", "until=fetch", *override).code == 0
    (run,) = runs(project)
    board = {k: v for k, v in run["params"].items() if k.startswith("hardware.")}
    assert board == {
        "hardware.name": "arduino",
        "hardware.clock_hz": "8",
        "hardware.sram_bytes": "4096",
        "hardware.flash_bytes": "32256",
        "hardware.weights_in": "sram",
        "hardware.activations_in": "sram",
        "hardware.stack_reserve_bytes": "50",
    }
    noise = ("_target_", "code.", "files.", "environment.", "cache.", "tracking", "output")
    assert not [key for key in run["params"] if key.startswith(noise) or "_target_" in key]
    kept = yaml.safe_load((Path(urlparse(run["uri"]).path) / "params.yaml").read_text())
    assert kept["hardware"]["power"]["source"] == "a data sheet"


@pytest.mark.ci
def test_a_mistake_before_the_first_stage_is_no_failed_run(project: Project) -> None:
    """None in MLflow at all: a typo, a folder that cannot be, a cache that cannot be shared."""
    mistakes = (
        ("hardware=nonsense",),
        ("target.images=-1",),
        ("hydra.run.dir=.",),
        ("cache.remote=nonsense://place",),
    )
    for mistake in mistakes:
        failed = project.run("tracking=wait", *mistake)
        assert failed.code == 1 and failed.err.count("\n") == 1, failed.err
        assert not spooled(project) and not (project.root / ".thimble/tracking/mlflow.db").exists()
    assert not list((project.root / ".thimble").glob("tracking/begun/*"))
    project.env["FAKE_ACT"] = "fetch:fail"
    assert project.run("tracking=wait").code == 1
    (run,) = runs(project)
    assert run["status"] == "FAILED" and run["tags"]["error"] == "the oven is cold: heat it"
    reason = "the run failed: the oven is cold: heat it"
    assert run["tags"]["missing.pmu_bytes"] == run["tags"]["missing.wear"] == reason


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
    patched = {run["params"].get("seed") for run in found if "code.patch" in run["artifacts"]}
    assert patched == {"2", "3"}, "a sweep's own folder has no copy of the code to compare"


@pytest.mark.ci
def test_failures_and_results_that_do_not_fit_are_tracked(project: Project) -> None:
    assert project.run("strategy=naive", "tracking=wait").code == 3
    project.env["FAKE_ACT"] = "build:fail"
    assert project.run("tracking=wait").code == 1
    found = {run["tags"]["thimble.status"]: run for run in runs(project)}
    assert found["infeasible"]["status"] == "FINISHED"
    assert found["infeasible"]["metrics"]["pmu_bytes"] == 3000
    assert found["failed"]["status"] == "FAILED"


@pytest.mark.ci
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
def test_three_processes_on_an_absent_database(project: Project) -> None:
    processes = [project.start("tracking=wait", f"target.images={n}") for n in range(3)]
    for process in processes:
        _, err = process.communicate()
        assert process.returncode == 0, err
    found = runs(project)
    assert sorted(run["params"]["target.images"] for run in found) == list("012")
    assert not spooled(project)


@pytest.mark.slow
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
