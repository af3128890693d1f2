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
    quick(
        5,
        [
            ("hardware=arduin", "unknown hardware 'arduin': did you mean hardware=arduino?"),
            ("strategy=herring", "did you mean strategy=herringbone?"),
            ("model=mnist", "unknown model 'mnist': did you mean model=mnist_2kb?"),
            (
                "hardware.sram_byte=1",
                "unknown key hardware.sram_byte: did you mean hardware.sram_bytes",
            ),
            ("hardwre=arduino", "unknown key hardwre: did you mean hardware?"),
            ("hardwre.sram_bytes=1", "unknown key hardwre: did you mean hardware? the top level"),
            ("sed=3", "unknown key sed: did you mean seed?"),
            ("target.image=3", "did you mean target.images? target has name, images, port"),
            ("hardware.sram_bytes=much", "hardware.sram_bytes: Value 'much' of type 'str'"),
            ("package.weights_in=card", "package.weights_in: Invalid value 'card', expected one"),
            ("until=never", "until: Invalid value 'never', expected one of [fetch, train,"),
            ("strategy.layout=heap", "strategy.layout: Invalid value 'heap'"),
            ("strategy.layuot=slots", "unknown key strategy.layuot: did you mean strategy.layout?"),
            ("train.batch=many", "train.batch: Value 'many' of type 'str' could not be converted"),
            ("strategy", "strategy: not understood, write key=value"),
            ("strategy=[", "not understood, write key=value"),
            (
                "sweep=none_such",
                "unknown sweep 'none_such': there are architectures, architectures_flash,",
            ),
        ],
    ),
)
def test_mistyped_commands(untouched: Project, override: str, said: str) -> None:
    run = untouched.run(override)
    assert said in one_line(run)
    assert run.out == "" and not (untouched.root / "outputs").exists()


def test_what_is_found_before_the_first_stage_leaves_no_folder(project: Project) -> None:
    run = project.run("cache.remote=lab", "output=json")
    assert run.code == 1 and "no DVC remote" in run.json["error"]
    assert not (project.root / "outputs").exists()


def test_mistakes_as_json(project: Project) -> None:
    run = project.run("output=json", "hardware=arduin")
    assert run.code == 1
    assert run.json["status"] == "failed" and "arduino" in run.json["error"]


@pytest.mark.ci
def test_developers_get_the_trace(project: Project) -> None:
    project.env = {"HYDRA_FULL_ERROR": "1"}
    assert "Traceback" in project.run("sed=3").err
    project.env["FAKE_ACT"] = "fetch:crash"
    assert "Traceback" in project.run().err


@pytest.mark.parametrize(
    ("act", "said"),
    quick(
        1,
        [
            ("fail", "the oven is cold: heat it"),
            ("crash", "train: KeyError: 'surprise'"),
            ("full", "train: the disk is full (No space left on device): free some space"),
            ("kill", "train was killed by signal 9: run it again"),
        ],
    ),
)
def test_a_failing_stage_says_why_once(project: Project, act: str, said: str) -> None:
    project.env["FAKE_ACT"] = f"train:{act}"
    run = project.run()
    assert said in one_line(run)
    (folder,) = (project.root / "outputs").glob("*/*")
    kept = json.loads((folder / "result.json").read_text())
    assert kept["status"] == "failed" and said in kept["error"]
    project.env.clear()
    project.ran()
    assert project.run("until=train").code == 0
    assert project.ran() == ["train"], "it continues where it failed"


@pytest.mark.ci
def test_a_config_class_outside_the_project_is_refused(project: Project) -> None:
    said = one_line(project.run("strategy._target_=os.system"))
    assert "_target_ 'os.system' is outside pipeline.*: refused" in said
    said = one_line(project.run("strategy._target_=pipeline.strategies.tiny.Tiny"))
    assert "_target_ 'pipeline.strategies.tiny.Tiny' does not exist" in said


@pytest.mark.ci
def test_a_damaged_cache_is_noticed_and_repaired(project: Project) -> None:
    """A file that is overwritten, one that is cut and one that is gone."""
    stages = {"fetch": "data/dataset.npz", "train": "weights.npz", "prune": "pruned.npz"}
    folder = Path(project.run("output=json", "until=prune").json["run_dir"])
    good = {name: (folder / name).read_bytes() for name in stages.values()}
    project.ran()
    overwritten, cut, _ = good.values()
    for content in good.values():
        for path in cached_files(project, content):
            mode = path.stat().st_mode
            path.chmod(0o644)
            if content in (overwritten, cut):
                path.write_bytes(content[:-3] if content == cut else b"x" * len(content))
                path.chmod(mode)
            else:
                path.unlink()
    run = project.run("output=json", "until=prune")
    assert run.code == 0, run.err
    assert project.ran() == list(stages)
    for name, content in good.items():
        assert (Path(run.json["run_dir"]) / name).read_bytes() == content


def cached_files(project: Project, content: bytes) -> list[Path]:
    files = (project.root / ".thimble" / "cache" / "files").rglob("*")
    found = [path for path in files if path.is_file() and path.read_bytes() == content]
    assert found
    return found


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
def test_a_full_disk_is_one_line(project: Project, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "48k") as disk:
        project.env["THIMBLE_HOME"] = str(disk)
        (disk / "filler").write_bytes(b"x" * 30000)
        run = project.run("until=train")
        said = one_line(run)
        assert "No space left on device" in said or "disk is full" in said
        assert "free some space" in said
        (disk / "filler").unlink()
        os.system(f"mount -o remount,size=8m {disk}")
        assert project.run("until=train").code == 0


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
