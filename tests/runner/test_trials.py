"""Optuna's trials are jobs: the best within limits, and a search that goes on where it was."""

import json
import re
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import OmegaConf

from pipeline.artifacts import write_json
from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.runner import progress, sweep, trials
from pipeline.runner.trials import RESULTS, Optuna
from tests.runner.project import Project
from tests.tiers import quick

CONF: dict[str, Any] = yaml.safe_load((ROOT / "conf/hydra/sweeper/optuna.yaml").read_text())
OPTIONS = {key: value for key, value in CONF.items() if key != "_target_"} | {"n_jobs": 1}
SPACE = ["a=range(0,8)", "b=x,y", "seed=3"]


class Told(Optuna):
    """Without processes: time grows with a, y takes half of it and more memory; more than 12 B do
    not fit. From job ``killed`` on the command is at its end."""

    killed = 1_000

    def parsed(self, words: Sequence[str]) -> list[Override]:
        return OverridesParser.create().parse_overrides(list(words))

    def begin(self, jobs: Sequence[Sequence[str]], count: str = "") -> None:
        write_json(self.folder / sweep.ABOUT, {})
        self.begun = True

    def launch(self, jobs: Sequence[Sequence[str]], first: int) -> None:
        for number, job in enumerate(jobs, first):
            if number >= self.killed:
                raise KeyboardInterrupt
            a, b = int(job[1].removeprefix("a=")), job[2]
            took, size = a * (1 + (b == "b=x")), 8 + (8 - a) * (b == "b=y")
            result: dict[str, Any] = {"status": "ok", "pmu_bytes": size, "latency_us": took}
            if size > 12:
                result = {"status": "infeasible", "resource": "SRAM"}
                result |= {"needed_bytes": size, "available_bytes": 12}
            if a == 7:
                result = {"status": "failed", "error": "not 7"}
            place = self.folder / str(number)
            write_json(place / "result.json", {**result, "run_dir": str(place)})
            progress.lost(self.folder, number, "")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THIMBLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(trials.options, "check", lambda config: None)


def told(
    folder: Path, killed: int = 1_000, space: Sequence[str] = SPACE, fresh: bool = True, **more: Any
) -> Told:
    """A finished search; one that is killed raises KeyboardInterrupt."""
    search = Told(**OPTIONS | more)
    search.folder, search.killed, search.jobs, search.tries = folder, killed, [], []
    launcher: Any = SimpleNamespace(compose=lambda *_: {}, launch=search.launch)
    search.jobs_launcher = launcher
    search.config = OmegaConf.create({"cache": {"fresh": fresh}})
    folder.mkdir()
    search.sweep(list(space))
    return search


def best(search: Told) -> list[list[str]]:
    about = json.loads((search.folder / sweep.ABOUT).read_text())
    return [search.jobs[number] for number in about["best"]]


@pytest.mark.ci
def test_the_best_that_fits(tmp_path: Path) -> None:
    search = told(tmp_path / "a", n_trials=16)
    assert sorted(search.jobs) == sorted(
        ["seed=3", f"a={a}", f"b={b}"] for a in range(8) for b in "xy"
    )
    assert best(search) == [["seed=3", "a=0", "b=x"]]
    found = yaml.safe_load((search.folder / RESULTS).read_text())
    assert found == {"name": "optuna", "best_params": {"a": 0, "b": "x"}, "best_value": 0}


@pytest.mark.ci
@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"at_least": {"latency_us": 5}}, ["a=5 b=y"]),
        ({"maximize": ["latency_us"], "minimize": [], "limits": {"pmu_bytes": 9}}, ["a=6 b=x"]),
        ({"minimize": ["pmu_bytes"], "maximize": ["latency_us"]}, ["a=6 b=x"]),
        ({"minimize": ["latency_us", "pmu_bytes"], "at_least": {"latency_us": 5}},
         ["a=3 b=x", "a=5 b=y"]),
    ],
)  # fmt: skip
def test_limits_and_many_objectives(tmp_path: Path, more: dict[str, Any], found: list[str]) -> None:
    search = told(tmp_path / "a", n_trials=16, **more)
    assert sorted(" ".join(job[1:]) for job in best(search)) == found
    several = len(search.minimize) + len(search.maximize) > 1
    assert ("solutions" in yaml.safe_load((search.folder / RESULTS).read_text())) == several


@pytest.mark.parametrize("sampler", quick(1, ["TPESampler", "NSGAIISampler"]))
def test_a_search_goes_on_where_it_was(tmp_path: Path, sampler: str) -> None:
    """It asks for what it would have asked for, first of all for what it had asked for."""
    options: dict[str, Any] = {"sampler": sampler, "space": ["a=range(0,7)", "b=x,y", "seed=3"]}
    whole = told(tmp_path / "whole", n_trials=12, **options)
    with pytest.raises(KeyboardInterrupt):
        told(tmp_path / "a", 6, n_trials=12, fresh=False, **options)
    again = told(tmp_path / "b", n_trials=12, fresh=False, **options)
    assert again.jobs == whole.jobs and best(again) == best(whole)


def test_jobs_side_by_side_differ_and_come_first_the_next_time(tmp_path: Path) -> None:
    """Whatever the sampler would ask for by then; what failed is tried again by and by."""
    more: dict[str, Any] = {"fresh": False, "space": ["seed=3", "a=range(0,7)", "b=x,y"]}
    first = told(tmp_path / "a", n_trials=9, n_jobs=3, **more)
    assert len(set(map(tuple, first.jobs))) == 9
    again = told(tmp_path / "b", n_trials=14, seed=5, **more)
    assert again.jobs[:9] == first.jobs and len(set(map(tuple, again.jobs))) == 14
    anew = told(tmp_path / "c", n_trials=9, seed=5, **more | {"fresh": True})
    assert anew.jobs != first.jobs


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("a=4,8", "CategoricalDistribution(choices=(4, 8))"),
        ("a=[1,2],[3]", "CategoricalDistribution(choices=('[1,2]', '[3]'))"),
        ("a=range(2,9,3)", "IntDistribution(high=8, log=False, low=2, step=3)"),
        ("a=range(0.5,1,0.25)", "FloatDistribution(high=0.75, log=False, low=0.5, step=0.25)"),
        ("a=interval(1,2)", "FloatDistribution(high=2.0, log=False, low=1.0, step=None)"),
        ("a=int(interval(1,8))", "IntDistribution(high=8, log=False, low=1, step=1)"),
        ("a=tag(log,interval(1,8))", "FloatDistribution(high=8.0, log=True, low=1.0, step=None)"),
    ],
)
def test_the_space(word: str, said: str) -> None:
    assert str(trials._distribution(OverridesParser.create().parse_override(word))) == said


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda at: told(at, minimize=[]), "give a figure to minimize"),
        (lambda at: told(at, jobs=["seed=1"]), "leave them out"),
        (lambda at: told(at, space=["a=1"]), "has nothing to choose"),
        (lambda at: told(at, sampler="GridSampler"), "sampler=GridSampler: not to be had"),
        (lambda at: told(at, sampler="Best"), "sampler=Best: not to be had"),
        (lambda at: told(at, minimize=["macs"]), "macs is no figure of"),
    ],
)
def test_mistakes(tmp_path: Path, act: Callable[[Path], Any], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        act(tmp_path / "a")


@pytest.mark.slow
def test_a_search(project: Project) -> None:
    """List what does not fit as a row; Ctrl-C ends the search, and the same command goes on."""
    words = ("-m", "output=json", "hydra/sweeper=optuna", "strategy=naive,herringbone",
             "hardware.flash_bytes=32000,32001", "hydra.sweeper.minimize=[pmu_bytes]",
             "until=schedule", "hydra/launcher=local",
             "hydra.sweeper.limits.pmu_bytes=2000")  # fmt: skip
    run = project.run(*words, "hydra.sweeper.n_trials=2", "strategy.layout=heap")
    assert run.code == 1 and "expected one of" in run.json["error"]
    project.hold("schedule")
    process = project.start(*words)
    project.wait_for("schedule")
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    project.release("schedule")
    before = project.ran()
    run = project.run(*words)
    assert run.code == 0, run.err
    jobs = run.json["jobs"]
    assert sorted(job["status"] for job in jobs) == ["infeasible"] * 2 + ["ok"] * 2
    assert [jobs[n]["strategy"] for n in run.json["best"]] == ["herringbone"] * 2
    assert "train" in before and "train" not in project.ran()
    assert re.search(r"4 of 4 jobs: 0 running, \d done, \d cached, 2 infeasible", run.err)
    again = project.run(*words)
    assert "study" not in run.err, "Optuna has nothing to say"
    assert again.json["best"] == run.json["best"] and not project.ran()
    assert [job["overrides"] for job in again.json["jobs"]] == [job["overrides"] for job in jobs]
