"""Runs reach MLflow: all of them, once, jobs under their sweep; also where SIGKILL ends one."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
import yaml

from pipeline.tracking.checkout import recorded
from pipeline.tracking.page import PAGE, VIEW
from tests.programs import git
from tests.runner.project import STRATEGY, Project
from tests.tracking.database import nothing_logged, runs, spooled, track, tracking

STRATEGIES = ("naive", "herringbone")
UNTIL = "until=schedule"
SWEEP = ("-m", "output=json", "strategy=naive,herringbone", "target.images=1,2", UNTIL)
MISTAKES = (
    ("hardware=nonsense",),
    ("target.images=-1",),
    ("hydra.run.dir=.",),
    ("cache.remote=nonsense://place",),
)
FIELDS = range(250)


@dataclass(frozen=True)
class Tracked:
    """A project after the runs that the tests below look at: all that MLflow has, by name; the
    sweep's result, the commit, an entry of the spool, and what was there when all were spooled."""

    project: Project
    found: dict[str, dict[str, Any]]
    sweep: dict[str, Any]
    commit: str
    entry: tuple[Path, str]
    database: bool
    spooled: int


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Tracked:
    """One project for all: what takes most is MLflow's start, once for all runs here."""
    project = Project(tmp_path_factory.mktemp("tracked") / "project")
    wide(project)
    project.write(".gitignore", "__pycache__/\n")
    git(project.root, "init", "-q")
    git(project.root, "add", "run.py", "dvc.yaml", "conf", "pipeline", "stages", "firmware")
    git(project.root, "commit", "-q", "-m", "All")
    with nothing_logged(project):
        for mistake in MISTAKES:
            failed = project.run("tracking=background", *mistake)
            assert failed.code == 1 and failed.err.count("\n") == 1, failed.err
        project.env["FAKE_ACT"] = "quantize:unreadable"
        assert project.run("tracking=background").code == 1
        both = project.run("-m", "output=json", "tracking=background", "target.images=1,2")
        assert [job["began"] for job in both.json["jobs"]] == [False, False]
        del project.env["FAKE_ACT"]
        assert not spooled(project) and not list(project.root.glob(".thimble/tracking/begun/*"))
        assert project.run("tracking=background", UNTIL, "hardware=big").code == 0
        project.write("pipeline/strategies/another.py", "")
        sweep = project.run(*SWEEP, "tracking=background")
        assert sweep.code == 0, sweep.err
        set_here = ("hardware.sram_bytes=2040", "hardware.stack_reserve_bytes=50")
        assert project.run("tracking=background", "strategy=wide", *set_here).code == 0
        project.env["FAKE_ACT"] = "generate:fail"
        assert project.run("tracking=background", "seed=5").code == 1
        waiting = sorted(spooled(project))
        entry, content = waiting[0], waiting[0].read_text()
        made = (project.root / ".thimble/tracking/mlflow.db").exists()
    project.env["FAKE_ACT"] = "fetch:fail"
    assert project.run("tracking=wait", "seed=6", "data.validation=4").code == 1
    found = {called(run): run for run in runs(project)}
    assert len(found) == len(runs(project))
    commit = git(project.root, "rev-parse", "HEAD")
    kept = (entry, content)
    return Tracked(project, found, sweep.json, commit, kept, made, len(waiting))


def called(run: dict[str, Any]) -> str:
    """The run's name, and its seed unless that is the default."""
    seed = run["params"].get("seed", "1")
    return str(run["tags"]["mlflow.runName"]) + ("" if seed == "1" else f" {seed}")


def wide(project: Project) -> None:
    """A strategy with many fields."""
    fields = "".join(f"    field_{number:03}: int = 0\n" for number in FIELDS)
    source = STRATEGY.format(title="Wide", pmu=400)
    source = source.replace("    pmu_bytes", f"{fields}    pmu_bytes", 1)
    project.write("pipeline/strategies/wide.py", source)
    option: dict[str, Any] = {"name": "wide", "_target_": "pipeline.strategies.wide.Wide"}
    option |= {f"field_{number:03}": number for number in FIELDS}
    project.write("conf/strategy/wide.yaml", yaml.safe_dump(option))


BIG = "mnist_2kb · big · herringbone"
WIDE = "mnist_2kb · arduino · wide"
SWEPT = "strategy=naive,herringbone · target.images=1,2 · 4 jobs"
JOBS = [f"mnist_2kb · arduino · {s} · target.images={n}" for s in STRATEGIES for n in (1, 2)]


@pytest.mark.ci
def test_runs_are_called_by_what_was_chosen(tracked: Tracked) -> None:
    """And say what they were told to do, where they are from, and what they lack."""
    assert {BIG, SWEPT, *JOBS} <= set(tracked.found)
    one, parent = tracked.found[BIG], tracked.found[SWEPT]
    reason = "nothing executed: until=schedule"
    assert one["tags"]["missing.energy_uj"] == one["tags"]["missing.accuracy_int"] == reason
    assert one["tags"]["missing.sram_bytes"] == "nothing built: until=schedule"
    assert "missing.pmu_bytes" not in one["tags"] and one["metrics"]["pmu_bytes"] == 400
    command, *lacks = one["tags"]["mlflow.note.content"].splitlines()
    assert command == "`python run.py until=schedule hardware=big`"
    assert f"- no energy_uj: {reason}" in lacks
    assert parent["tags"]["mlflow.note.content"].startswith("`python run.py -m strategy=naive,")
    assert not [key for key in parent["tags"] if key.startswith("missing.")], "its jobs say it"
    assert {run["tags"]["mlflow.source.name"] for run in tracked.found.values()} == {"run.py"}
    about = one["experiment"]
    assert PAGE.format(1) in about["mlflow.note.content"], "MLflow opens on another page"
    view = json.loads(about[f"mlflow.sharedViewState.{VIEW}"])
    assert json.loads(view["state"])["selectedColumns"][6] == "metrics.`wear`"
    naive = tracked.found[JOBS[0]]
    reason = "does not fit: SRAM needs 3000 B of 2048 B"
    assert naive["tags"]["missing.latency_us"] == reason


@pytest.mark.ci
def test_every_parameter_and_version_is_tracked_and_no_board(tracked: Tracked) -> None:
    """Track of the board what was chosen, or set; the others would fill the screen."""
    run, root = tracked.found[WIDE], tracked.project.root
    assert run["status"] == "FINISHED" and run["tags"]["thimble.status"] == "ok"
    assert run["metrics"]["pmu_bytes"] == 400 and run["metrics"]["cycles"] == 5
    names = {"params.yaml", "dvc.lock", "plan.json", "generated", "code.json", "result.json"}
    assert names <= set(run["artifacts"])
    assert run["uri"].startswith(f"file://{root}/.thimble/tracking/artifacts/")
    assert not list(root.glob("mlruns*")) and not list(root.glob("*.db"))
    board = {k: v for k, v in run["params"].items() if k.startswith("hardware.")}
    assert board == {
        "hardware.name": "arduino",
        "hardware.card.security": "unchecked",
        "hardware.sram_bytes": "2040",
        "hardware.stack_reserve_bytes": "50",
    }
    noise = ("_target_", "code.", "files.", "environment.", "cache.", "tracking", "output")
    assert not [key for key in run["params"] if key.startswith(noise) or "_target_" in key]
    kept = yaml.safe_load((Path(urlparse(run["uri"]).path) / "params.yaml").read_text())
    assert kept["hardware"]["power"]["source"] == "a data sheet"
    expected = {f"strategy.field_{number:03}": str(number) for number in FIELDS}
    assert expected.items() <= run["params"].items()
    assert run["params"]["target.images"] == "7", "the last group"
    folder = Path(run["tags"]["thimble.run_dir"])
    versions = recorded(folder)["versions"]
    assert versions["host"]
    of_tools = {k: v for k, v in run["params"].items() if k.startswith("versions.")}
    assert of_tools == {f"versions.{name}": version for name, version in versions.items()}


@pytest.mark.ci
def test_jobs_are_nested_in_their_sweep_and_code_is_tracked(tracked: Tracked) -> None:
    parent = tracked.found[SWEPT]
    nested = {n for n, run in tracked.found.items() if "mlflow.parentRunId" in run["tags"]}
    assert nested == set(JOBS)
    assert {tracked.found[n]["tags"]["mlflow.parentRunId"] for n in JOBS} == {parent["id"]}
    assert parent["tags"]["thimble.run_dir"] == tracked.sweep["run_dir"]
    assert "result.json" in parent["artifacts"]
    found = tracked.found
    assert {run["tags"]["code_version"] for run in found.values()} == {tracked.commit}
    clean = {name for name, run in found.items() if run["tags"]["code_dirty"] == "false"}
    assert clean == {BIG}, "all others ran after an edit"
    patched = {name for name, run in found.items() if "code.patch" in run["artifacts"]}
    assert patched == set(found) - {BIG, SWEPT}, "a sweep's own folder has no code"


@pytest.mark.ci
def test_failures_and_results_that_do_not_fit_are_tracked(tracked: Tracked) -> None:
    """A mistake before the first stage is no failed run: a typo, a folder that cannot be, a cache
    that cannot be shared. Nor is a network that cannot be imported, or a sweep of such."""
    naive = tracked.found[JOBS[0]]
    assert naive["status"] == "FINISHED" and naive["tags"]["thimble.status"] == "infeasible"
    assert naive["metrics"]["pmu_bytes"] == 3000
    cold = "the oven is cold: heat it"
    failed = {
        run["params"]["seed"]: run for run in tracked.found.values() if run["status"] == "FAILED"
    }
    assert failed.keys() == {"5", "6"}, "and none of the mistakes"
    assert {run["tags"]["error"] for run in failed.values()} == {cold}
    assert failed["5"]["metrics"]["pmu_bytes"] == 400, "it got as far as that"
    tags, reason = failed["6"]["tags"], f"the run failed: {cold}"
    assert tags["missing.pmu_bytes"] == tags["missing.wear"] == reason


@pytest.mark.ci
def test_what_was_spooled_is_logged_by_the_next_and_twice_makes_one_run(tracked: Tracked) -> None:
    """As a kill after its run was logged, and before its entry was removed."""
    assert tracked.spooled == 8 and not tracked.database, "nobody had logged them"
    assert len(tracked.found) == 9 and not spooled(tracked.project), "the next did"
    path, content = tracked.entry
    path.write_text(content)
    assert track(tracked.project).wait() == 0
    assert not spooled(tracked.project)
    again = runs(tracked.project)
    assert sorted(run["id"] for run in again) == sorted(r["id"] for r in tracked.found.values())


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
