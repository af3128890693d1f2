"""``replay=RUN``: everything is made anew and compared with what was recorded, file by file."""

import re
from pathlib import Path
from urllib.parse import urlparse

import pytest
import yaml

from pipeline.home import STAGES
from pipeline.tracking.checkout import recorded as origin
from tests.programs import git
from tests.runner.project import Project
from tests.tracking.database import nothing_logged, runs


def recorded(project: Project, *args: str) -> Path:
    """The folder of a run that ended well."""
    run = project.run("output=json", *args)
    assert run.code == 0, run.err
    project.ran()
    return Path(run.json["run_dir"])


def lines(text: str, word: str) -> list[str]:
    return [line for line in text.splitlines() if word in line]


@pytest.mark.ci
def test_everything_is_made_anew_and_agrees(project: Project) -> None:
    """So is a run that does not fit."""
    folder = recorded(project, "target.images=5", "strategy=herringbone")
    run = project.run(f"replay={folder.relative_to(project.root)}")
    assert run.code == 0, run.err
    assert project.ran() == list(STAGES), "a cache proves nothing"
    assert len(lines(run.out, "agrees")) == len(STAGES)
    assert lines(run.out, "replay ") == [f"  replay     all 15 files agree with {folder}"]
    (again,) = (project.root / "outputs" / "replay").iterdir()
    params, kept = ((place / "params.yaml").read_text() for place in (again, folder))
    assert params == kept.replace("fresh: false", "fresh: true").replace(
        "output: json", "output: text"
    )
    run = project.run("output=json", "strategy=naive")
    assert run.code == 3
    run = project.run(f"replay={run.json['run_dir']}", "output=json")
    assert run.code == 0 and run.json["status"] == "infeasible" and run.json["replay"]["agrees"]


@pytest.mark.slow
def test_what_differs_is_named_with_both_hashes(project: Project) -> None:
    """From params.yaml, too, and from the cache."""
    folder = recorded(project, "until=train")
    for fresh in ("true", "false"):
        args = (f"replay={folder}/params.yaml", "output=json", f"cache.fresh={fresh}")
        replay = project.run(*args).json["replay"]
        assert replay["agrees"] is True and replay["differs"] == replay["changed"] == []
        assert replay["stages"] == {"fetch": True, "train": True} and replay["files"] == 3
        assert project.ran() == (["fetch", "train"] if fresh == "true" else [])
    project.env["FAKE_NOISE"] = "train"
    run = project.run(f"replay={folder}")
    assert run.code == 1
    assert lines(run.out, "fetch")[-1] == "  fetch      agrees"
    (line,) = lines(run.out, "weights.npz")
    told = r"  train      differs: weights\.npz, recorded [0-9a-f]{12}, here [0-9a-f]{12}"
    assert re.fullmatch(told, line)
    assert run.err == (
        "the replay differs from the recorded run in 2 of 3 files, first in train: training.csv\n"
    )
    run = project.run(f"replay={folder}", "output=json")
    assert run.code == 1 and run.json["status"] == "failed"
    replay = run.json["replay"]
    assert replay["agrees"] is False and replay["stages"]["train"] is False
    first, made = replay["differs"][0], origin(folder)["made"]
    assert first["recorded"] == made["train"]["training.csv"]
    assert len(first["here"]) == 32 != first["recorded"]


@pytest.mark.slow
def test_what_has_changed_since_is_said(project: Project) -> None:
    folder = recorded(project, "until=schedule")
    small = project.root / "pipeline/strategies/small.py"
    small.write_text(small.read_text().replace('"Small"', '"Smaller"'))
    path = folder / "code.json"
    for key in ("processor", "host"):
        path.write_text(re.sub(rf"({key}\W+).*?([\",]*)\n", r"\1another\2\n", path.read_text()))
    run = project.run(f"replay={folder}")
    assert run.code == 1 and "first in schedule: plan.json (changed since: code," in run.err
    (line,) = lines(run.out, "since it was recorded")
    assert "code, pipeline/strategies/small.py;" in line
    assert "host another → " in line and "processor another → " in line
    small.write_text(small.read_text().replace('"Smaller"', '"Small"') + "# a new thought\n")
    run = project.run(f"replay={folder}")
    assert run.code == 0, "other code, the same results"
    assert "code, pipeline/strategies/small.py" in lines(run.out, "since it was recorded")[0]


@pytest.mark.slow
def test_a_killed_replay_goes_on(project: Project) -> None:
    folder = recorded(project, "until=schedule")
    project.hold("schedule")
    with project.start(f"replay={folder}") as process:
        project.wait_for("schedule")
        process.kill()
    project.release("schedule")
    project.ran()
    assert project.run(f"replay={folder}").code == 0
    assert project.ran() == ["schedule"]
    assert project.run(f"replay={folder}").code == 0
    assert project.ran() == list(STAGES[:5]), "once it ended, it begins anew"


@pytest.mark.ci
def test_what_cannot_be_repeated_is_one_line(project: Project) -> None:
    folder = recorded(project, "until=fetch")
    project.env["FAKE_ACT"] = "train:fail"
    failed = project.run("output=json").json["run_dir"]
    project.env.clear()
    project.ran()
    bare = project.root / "bare"
    bare.mkdir()
    (bare / "params.yaml").write_text("seed: 1\n")
    for args, said in {
        (f"replay={folder}", "seed=2"): "repeats a run as it was: leave out seed=2",
        (f"replay={folder}", "-m"): "repeats a run as it was: leave out -m",
        (f"replay={folder}", f"replay={failed}"): "leave out replay=",
        (f"replay={failed}",): "failed: the oven is cold: heat it; there is nothing to compare",
        ("replay=no/such",): "replay=no/such: there is no such folder, nor params.yaml",
        ("replay=bare",): "bare did not end; there is nothing to compare",
        ("replay=12ab",): "12ab: no run is tracked under this name",
        ("replay=%",): "no run is tracked under this name",
    }.items():
        run = project.run(*args, "output=json")
        assert run.code == 1 and run.err.count("\n") == 1 and said in run.err, run.err
        assert run.json["status"] == "failed" and said in run.json["error"]
    assert project.ran() == [] and not (project.root / "outputs" / "replay").exists()


@pytest.mark.slow
def test_a_tracked_run_is_repeated_from_what_mlflow_has(project: Project) -> None:
    """Its folder is gone, the code has been edited: MLflow's patch brings that back."""
    git(project.root, "init", "-q")
    git(project.root, "add", "run.py", "dvc.yaml", "conf", "pipeline", "stages", "firmware")
    git(project.root, "commit", "-q", "-m", "All")
    small = project.root / "pipeline/strategies/small.py"
    small.write_text(small.read_text().replace('"Small"', '"Edited"'))
    project.write("pipeline/strategies/new.py", "NEW = 1\n")
    with nothing_logged(project):
        where = "hydra.run.dir=mine/first"
        folder = recorded(project, "tracking=background", "seed=1", "until=schedule", where)
    project.run("-m", "tracking=wait", "until=fetch", "seed=2,3")
    for path in folder.rglob("*"):
        path.unlink() if not path.is_dir() else None
    found = runs(project)
    (one,) = (run for run in found if run["params"].get("seed") == "1")
    (sweep,) = (run for run in found if not run["params"])
    assert {"code.json", "code.patch"} <= set(one["artifacts"])
    kept = Path(urlparse(one["uri"]).path)
    assert origin(kept)["environment"]["python"].startswith("3.")

    edited = small.read_text()
    git(project.root, "checkout", "-q", ".")
    (project.root / "pipeline/strategies/new.py").unlink()
    again = ("output=json", "tracking=wait", "hydra.run.dir=mine/0")
    run = project.run(f"replay={one['id'][:10]}", *again)
    commit = git(project.root, "rev-parse", "HEAD")[:12]
    assert run.code == 1 and run.json["replay"]["of"] == one["id"]
    assert f"; try git checkout {commit} and its code.patch" in run.err
    (patch,) = (project.root / ".thimble" / "tracking" / "artifacts").rglob(
        f"{one['id']}/**/code.patch"
    )
    git(project.root, "apply", str(patch))
    assert small.read_text() == edited
    assert (project.root / "pipeline/strategies/new.py").read_text() == "NEW = 1\n"
    run = project.run("replay=first", "output=json")
    assert run.code == 0 and run.json["replay"]["agrees"], run.err

    run = project.run(f"replay={sweep['id']}")
    jobs = [run["id"] for run in found if run["tags"].get("mlflow.parentRunId") == sweep["id"]]
    assert run.code == 1 and "is a sweep: replay one of its jobs" in run.err
    assert len(jobs) == 2 and all(job in run.err for job in jobs)
    run = project.run("replay=0")
    assert run.code == 1 and "0: several runs are called so: " in run.err and "mine/0)" in run.err


@pytest.mark.ci
def test_a_folders_record_is_a_file_of_somebody_elses(project: Project) -> None:
    """It cannot name code, nor files; and it may be of another version."""
    path = recorded(project, "until=fetch") / "params.yaml"
    params = yaml.safe_load(path.read_text())
    factory = {"factory": "subprocess:getoutput", "kwargs": {"cmd": "touch pwned"}}
    for forged, said in (
        ({"model": factory}, "model.factory=subprocess:getoutput: not taken"),
        ({"model": {"path": str(project.root.parent / "secret")}}, "secret: not taken from a file"),
        ({"hardware": {"clock_khz": 1}}, "this version cannot repeat that run: Key 'clock_khz' not "
         "in 'Hardware'"),
    ):  # fmt: skip
        made = {group: {**params[group], **values} for group, values in forged.items()}
        path.write_text(yaml.safe_dump({**params, **made}))
        run = project.run(f"replay={path.parent}")
        assert run.code == 1 and said in run.err and run.err.count("\n") == 1, run.err
        assert ("; if you trust it, set THIMBLE_TRUST=1" in run.err) == ("not taken" in run.err)
    assert not list(project.root.rglob("pwned")) and project.ran() == []
