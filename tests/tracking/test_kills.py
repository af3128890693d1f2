"""SIGKILL in a run that is tracked, or in its tracking: no run is lost or logged twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.runner.project import Project
from tests.tracking.database import runs, spooled, track, trackers, tracking
from tests.waiting import until


@pytest.mark.ci
def test_a_killed_run_is_tracked_as_killed(project: Project) -> None:
    """A single run, and a sweep in its second job; by the next run, and once."""
    project.hold("train")
    for args in (("seed=1",), ("-m", "seed=2", "until=fetch,train")):
        with project.start(*args, "tracking=wait") as process:
            project.wait_for("train")
            assert len(spooled(project)) == (args[0] == "-m")
            process.kill()
        project.ran()
    project.release("train")
    for seed in (3, 4):
        assert project.run("tracking=wait", "until=fetch", f"seed={seed}").code == 0
    found = runs(project)
    assert not [run for run in found if "code_version" in run["tags"]], "no git checkout"
    params = [run["params"] for run in found]
    statuses = {
        (p.get("seed"), p.get("until")): r["status"] for p, r in zip(params, found, strict=True)
    }
    assert len(found) == 6 and statuses == {
        ("1", "measure"): "KILLED",
        (None, None): "KILLED",  # the sweep
        ("2", "fetch"): "FINISHED",
        ("2", "train"): "KILLED",
        ("3", "fetch"): "FINISHED",
        ("4", "fetch"): "FINISHED",
    }
    assert not list((tracking(project) / "begun").iterdir())


@pytest.mark.slow
def test_kills_while_the_database_is_made(project: Project) -> None:
    """MLflow makes its tables in hundreds of steps, over about a second."""
    chance = random.Random(1)
    made = 0
    for number in range(10):
        shutil.rmtree(tracking(project), ignore_errors=True)
        begin(project, f"seed={number}", kill_tracking=True)
        with track(project) as process:
            until(lambda: (tracking(project) / "unfinished" / "mlflow.db").exists())
            time.sleep(chance.uniform(0, 1.2))
            made += (tracking(project) / "mlflow.db").exists()
            process.kill()
        assert track(project).wait() == 0
        assert not spooled(project), (project.root / "tracked").read_text()
        assert [run["status"] for run in runs(project)] == ["FINISHED"]
    assert made < 5, "most kills came when the database was made already"


@pytest.mark.slow
def test_kills_while_runs_are_logged(project: Project) -> None:
    """Kills in run.py from its first line to its end, and in the process that it leaves behind."""
    assert project.run("tracking=wait", "until=fetch", "seed=0").code == 0
    chance = random.Random(2)
    ended = {0}
    for number in range(1, 25):
        if number % 2:
            args = (f"seed={number}", f"train.batch={number}", "until=train")
            with project.start("tracking=background", *args) as process:
                project.wait_for("train")
                time.sleep(chance.uniform(0, 0.5))
                process.kill()
            project.ran()
            ended |= {number} if process.returncode == 0 else set()
        else:
            begin(project, f"seed={number}")
            ended.add(number)
        time.sleep(chance.uniform(0, 5))
        for pid in trackers(project.root):
            os.kill(pid, signal.SIGKILL)
    assert project.run("tracking=wait", "until=fetch", "seed=99").code == 0
    found = runs(project)
    assert sorted(int(run["params"]["seed"]) for run in found) == [*range(25), 99]
    for run in found:
        folder = Path(run["tags"]["thimble.run_dir"])
        whole = int(run["params"]["seed"]) in ended | {99} or (folder / "result.json").exists()
        assert run["status"] == ("FINISHED" if whole else "KILLED"), run["params"]["seed"]
        assert "params.yaml" in run["artifacts"]
    assert {run["status"] for run in found} == {"FINISHED", "KILLED"}
    assert not spooled(project) and not list((tracking(project) / "begun").iterdir())


def begin(project: Project, *args: str, kill_tracking: bool = False) -> None:
    """A run that ends well, perhaps with tracking that never gets anywhere."""
    run = project.run("output=json", "tracking=background", "until=fetch", *args)
    assert run.code == 0 and json.loads(run.out)["status"] == "ok"
    for pid in trackers(project.root) if kill_tracking else ():
        os.kill(pid, signal.SIGKILL)
