"""Each mistake or full disk is one line and exit code 1; nothing is half-written or open to all."""

import errno
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from pipeline.errors import ThimbleError
from pipeline.runner import disk
from tests.programs import refusal
from tests.runner.project import MOUNTS, Project, Run, mounted
from tests.tiers import quick


def one_line(run: Run, code: int = 1) -> str:
    """The one line on standard error after the lines of stages that went well."""
    assert run.code == code, run.err
    assert "Traceback" not in run.err and "HYDRA_FULL_ERROR" not in run.err
    (line,) = run.err.splitlines()
    return line


def test_a_mistyped_command(untouched: Project) -> None:
    """Others are in test_early.py."""
    run = untouched.run("hardware.sram_byte=1")
    said = one_line(run)
    assert "unknown key hardware.sram_byte: did you mean hardware.sram_bytes" in said
    assert run.out == ""
    run = untouched.run("output=json", "hardware.sram_byte=1")
    assert run.json == {"status": "failed", "error": one_line(run)} and one_line(run) == said
    assert not (untouched.root / "outputs").exists()


def test_a_reader_that_has_seen_enough_ends_it_in_silence(project: Project) -> None:
    project.hold("fetch")
    process = project.start("output=json")
    project.wait_for("fetch")
    assert process.stdout
    process.stdout.close()
    project.release("fetch")
    assert "Broken" not in process.communicate()[1] and process.returncode == 1


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


ELSEWHERE = (
    "free some space, or choose another folder: for runs hydra.run.dir=FOLDER "
    "(hydra.sweep.dir=FOLDER), for the cache THIMBLE_HOME"
)


def full(run: Path, project: Project) -> str:
    """Return what is said of a full disk: a write that failed doesn't tell which it is."""
    where = f"the run's folder {run} or the cache in {project.root / '.thimble'}"
    return f"{where} cannot be written (No space left on device): {ELSEWHERE}"


@MOUNTS
@pytest.mark.parametrize(
    ("size", "act", "begins"),
    quick(1, [
        ("32m", "train:fill", "train: "),  # not what a stage says
        ("12k", "", ""),  # nor what run.py itself writes
        ("4k", "", ""),
    ]),
)  # fmt: skip
def test_a_full_disk(project: Project, tmp_path: Path, size: str, act: str, begins: str) -> None:
    project.env["FAKE_ACT"] = act
    with mounted(tmp_path / "disk", size) as place:
        run = project.run(f"hydra.run.dir={place}/run", "until=train")
        assert one_line(run) == begins + full(place / "run", project)


@MOUNTS
def test_a_full_disk_below_a_sweep(project: Project, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "40k") as place:
        run = project.run("-m", "output=json", "seed=1,2", f"hydra.sweep.dir={place}/sweep")
        said = full(place / "sweep", project)
        assert run.code == 1 and run.json["error"] == said
        assert run.err.count(said) == 1 and "Traceback" not in run.err
        assert "killed" not in run.out


def unmade(home: Path, why: str) -> str:
    return (
        f"the cache's folder {home} cannot be made ({why}): make it possible, or set THIMBLE_HOME "
        "to a folder that can be written"
    )


def test_why_a_home_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    for home, why in (
        (tmp_path / "file" / "below", "Not a directory"),
        (tmp_path / ("long" * 100), "File name too long"),
        (Path("/proc/none"), "No such file or directory"),
    ):
        monkeypatch.setenv("THIMBLE_HOME", str(home))
        assert refusal(disk.make_home) == unmade(home, why)
    denied = PermissionError(errno.EACCES, "Permission denied", str(tmp_path))
    monkeypatch.setenv("THIMBLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(denied))
    with pytest.raises(ThimbleError, match=r"home cannot be made \(Permission denied\): make it"):
        disk.make_home()  # as root nothing is denied


@pytest.mark.ci
def test_a_home_that_cannot_be_made(project: Project) -> None:
    project.write(".thimble", "in the way")
    said = unmade(project.root / ".thimble", "File exists")
    assert one_line(project.run()) == said
    sweep = project.run("-m", "output=json", "seed=1,2")
    assert sweep.json == {"status": "failed", "error": said} and sweep.code == 1
    assert not (project.root / "outputs").exists() and not (project.root / "multirun").exists()


def test_whatever_raises_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of copytree have no number, of writes no name; other disks' files keep theirs."""
    monkeypatch.setenv("THIMBLE_HOME", str(tmp_path / "home"))
    copying = shutil.Error([("a", "b", "[Errno 28] No space left on device: 'b'")])
    for error in (copying, OSError(errno.ENOSPC, "No space left on device")):
        said = disk.said(error, tmp_path / "run")
        assert "(No space left on device): free some space" in said and "None" not in said
    for place, named in (
        ("home/cache/x", f"the cache in {tmp_path / 'home'}"),
        ("run/x", f"the run's folder {tmp_path / 'run'}"),
    ):
        kept = OSError(errno.EROFS, "Read-only file system", str(tmp_path / place))
        assert disk.said(kept, tmp_path / "run").startswith(
            f"{named} cannot be written (Read-only file system): make it writable, or choose"
        )
    elsewhere = PermissionError(errno.EACCES, "Permission denied", "/there")
    assert disk.said(elsewhere, tmp_path / "run") == "Permission denied: /there"
    other = IsADirectoryError(errno.EISDIR, "Is a directory", "/there")
    assert disk.said(other, tmp_path) == "Is a directory: /there"
    assert disk.said(OSError("odd\nlines"), tmp_path) == f"odd: {tmp_path}"


def writable(*places: Path) -> list[str]:
    """List what others may write to, at and below ``places``."""
    found = [*places, *(path for place in places for path in place.rglob("*"))]
    assert len(found) > 100
    kept = (path for path in found if not path.is_symlink())
    return sorted(str(path) for path in kept if path.stat().st_mode & stat.S_IWOTH)


@pytest.mark.ci
def test_runs_and_sweeps(project: Project) -> None:
    for path in (project.root, *project.root.rglob("*")):  # a checkout that all may write to
        path.chmod(path.stat().st_mode | stat.S_IWOTH)
    sweep = ("-m", "seed=1,2", "hydra/launcher=local", "until=generate", "tracking=wait")
    for words in (("until=generate",), sweep):
        process = project.start(*words, umask=0)
        _, err = process.communicate()
        assert process.returncode == 0, err
    made = [project.root / name for name in ("outputs", "multirun", ".thimble")]
    assert writable(*made) == []


def test_what_the_umask_takes_from_others_stays_taken(project: Project) -> None:
    process = project.start("until=fetch", "hydra.run.dir=here", umask=0o077)
    process.communicate()
    assert process.returncode == 0
    assert not (project.root / "here").stat().st_mode & 0o077
    assert not (project.root / "here" / "data").stat().st_mode & 0o077
