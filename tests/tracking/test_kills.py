"""SIGKILL in a run that is tracked, or in its tracking: no run is lost or logged twice."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.runner.project import Project
from tests.tracking.database import runs, spooled, trackers, tracking


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
def test_kills_while_runs_are_logged(project: Project) -> None:
    """Kills in run.py from its first line to its end, and in the process that it leaves behind,
    which makes the database in hundreds of steps, over about a second."""
    chance, ended = random.Random(2), set[int]()
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
    assert sorted(int(run["params"]["seed"]) for run in found) == [*range(1, 25), 99]
    for run in found:
        folder = Path(run["tags"]["thimble.run_dir"])
        whole = int(run["params"]["seed"]) in ended | {99} or (folder / "result.json").exists()
        assert run["status"] == ("FINISHED" if whole else "KILLED"), run["params"]["seed"]
        assert "params.yaml" in run["artifacts"]
    assert {run["status"] for run in found} == {"FINISHED", "KILLED"}
    assert not spooled(project) and not list((tracking(project) / "begun").iterdir())


def begin(project: Project, *args: str) -> None:
    """A run that ends well."""
    run = project.run("output=json", "tracking=background", "until=fetch", *args)
    assert run.code == 0 and json.loads(run.out)["status"] == "ok"
