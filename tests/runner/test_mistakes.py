"""Each mistake is one line that says what to do, exit code 1, and leaves nothing half-written."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.runner.project import MOUNTS, Project, Run, mounted
from tests.tiers import quick


def one_line(run: Run, code: int = 1) -> str:
    """The one line on standard error after the lines of stages that went well."""
    assert run.code == code, run.err
    assert "Traceback" not in run.err and "HYDRA_FULL_ERROR" not in run.err
    (line,) = run.err.splitlines()
    return line


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("strategy", "strategy: not understood, write key=value"),
        (
            "hardware.sram_byte=1",
            "unknown key hardware.sram_byte: did you mean hardware.sram_bytes",
        ),
    ],
)
def test_mistyped_commands(untouched: Project, override: str, said: str) -> None:
    """Others are in test_early.py."""
    run = untouched.run(override)
    assert said in one_line(run) and run.out == ""
    assert untouched.run("output=json", override).json == {
        "status": "failed",
        "error": one_line(run),
    }
    assert not (untouched.root / "outputs").exists()


@pytest.mark.ci
def test_developers_get_the_trace(project: Project) -> None:
    project.env = {"HYDRA_FULL_ERROR": "1"}
    assert "Traceback" in project.run("sed=3").err
    project.env["FAKE_ACT"] = "fetch:crash"
    assert "Traceback" in project.run().err


@pytest.mark.parametrize(
    ("act", "said"),
    quick(1, [
        ("fail", "the oven is cold: heat it"),
        ("crash", "train: KeyError: 'surprise'"),
        ("full", "train: the disk is full (No space left on device): free some space"),
        ("kill", "train was killed by signal 9: run it again"),
    ]),
)  # fmt: skip
def test_a_failing_stage_says_why_once(project: Project, act: str, said: str) -> None:
    project.env["FAKE_ACT"] = f"train:{act}"
    assert said in one_line(project.run())
    (kept,) = (project.root / "outputs").glob("*/*/result.json")
    found = json.loads(kept.read_text())
    assert found["status"] == "failed" and said in found["error"]
    project.env.clear()
    project.ran()
    assert project.run("until=train").code == 0
    assert project.ran() == ["train"], "it continues where it failed"


@pytest.mark.ci
def test_two_runs_do_not_share_a_folder(project: Project) -> None:
    project.hold("fetch")
    with project.start("hydra.run.dir=here", "until=fetch") as first:
        project.wait_for("fetch")
        second = project.run("hydra.run.dir=here")
        assert "here is in use by another run: wait for it" in one_line(second)
        project.release("fetch")
        first.communicate()
    assert first.returncode == 0
    assert project.run("hydra.run.dir=here", "until=fetch").code == 0, (
        "afterwards it may be used again"
    )


@MOUNTS
@pytest.mark.ci
@pytest.mark.parametrize("place", ["home", pytest.param("home/cache", marks=pytest.mark.slow)])
def test_a_read_only_cache_is_one_line(project: Project, tmp_path: Path, place: str) -> None:
    home = tmp_path / "home"
    project.env["THIMBLE_HOME"] = str(home)
    with mounted(tmp_path / place, "8m") as disk:
        assert project.run("until=train").code == 0
        assert os.system(f"mount -o remount,ro {disk}") == 0
        assert project.run("until=train", "tracking=wait").code == 0, "all is in it"
        run = project.run("until=train", "tracking=wait", "train.batch=9")
        assert one_line(run).startswith(
            f"train: the cache in {home} cannot be written (Read-only file system): "
            "make it writable, or choose another folder: "
        )
        sweep = project.run("-m", "output=json", "tracking=wait", "until=train", "train.batch=8,9")
        assert sweep.code == 1 and "Traceback" not in sweep.err
        assert all("make it writable" in job["error"] for job in sweep.json["jobs"])
        os.system(f"mount -o remount,rw {disk}")
        project.ran()
        assert project.run("until=train").code == 0
        assert project.ran() == [], "the cache is as good as before"


@pytest.mark.ci
def test_a_project_moved_elsewhere_still_works(project: Project, tmp_path: Path) -> None:
    project.run("until=train")
    project.ran()
    moved = Project.__new__(Project)
    moved.root, moved.env = tmp_path / "moved", {}
    shutil.move(project.root, moved.root)
    assert moved.run("until=train").code == 0 and moved.ran() == []
