"""One's own strategy, model or data set: one file and one YAML, whatever its fields are called."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.runner.project import Project
from tests.tiers import quick

MINE = '''\
"""A strategy with a field that no other has."""

from dataclasses import dataclass

from pipeline.strategies.small import Small


@dataclass(frozen=True)
class Mine(Small):
    hidden: int = 8
    rate: float = 0.5

    def plan(self) -> str:
        return f"{self.hidden} {self.rate}"
'''
YAML = {"_target_": "pipeline.strategies.mine.Mine", "name": "mine", "hidden": 32}


@pytest.fixture
def project(project: Project) -> Project:
    project.write("pipeline/strategies/mine.py", MINE)
    project.write("conf/strategy/mine.yaml", yaml.safe_dump(YAML))
    return project


@pytest.mark.slow
def test_fields_of_ones_own_class_are_keys(project: Project) -> None:
    overrides = ("strategy=mine", "strategy.rate=2", "strategy.pmu_bytes=300")
    run = project.run("output=json", "until=schedule", *overrides)
    assert run.code == 0, run.err
    assert run.json["pmu_bytes"] == 300, "a field of its base, which the YAML does not give"
    params = yaml.safe_load((Path(run.json["run_dir"]) / "params.yaml").read_text())
    assert params["strategy"] == {**YAML, "rate": 2.0, "pmu_bytes": 300}
    assert isinstance(params["strategy"]["rate"], float)
    swept = project.run("-m", "output=json", "until=schedule", *overrides, "strategy.hidden=1,2")
    assert [job["status"] for job in swept.json["jobs"]] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("override", "said"),
    quick(
        1,
        ci=0,
        parameters=[
            (
                "strategy.hiden=3",
                "unknown key strategy.hiden: did you mean strategy.hidden? strategy",
            ),
            (
                "strategy.hidden=x",
                "strategy.hidden: Value 'x' of type 'str' could not be converted",
            ),
            (
                "strategy.layout=heap",
                "strategy.layout: Invalid value 'heap', expected one of [slots,",
            ),
        ],
    ),
)
def test_mistakes_are_noticed_before_anything_is_made(
    project: Project, override: str, said: str
) -> None:
    run = project.run("strategy=mine", override)
    assert run.code == 1 and said in run.err and run.err.count("\n") == 1, run.err
    assert not (project.root / "outputs").exists()
    run = project.run("output=json", "strategy=mine", override)
    assert run.code == 1 and run.json["status"] == "failed" and said in run.json["error"]
    swept = project.run("-m", "output=json", "strategy=mine", override, "seed=1,2")
    assert swept.code == 1 and said in swept.json["error"]
    assert not (project.root / "multirun").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    quick(
        2,
        [
            ({**YAML, "hiden": 3}, "unknown key strategy.hiden: did you mean strategy.hidden?"),
            ({**YAML, "hidden": "x"}, "strategy.hidden: Value 'x' of type 'str'"),
            (
                {**YAML, "_target_": "pipeline.strategies.mine.Min"},
                "mine.Min' does not exist: there is",
            ),
            (
                {"_target_": YAML["_target_"]},
                "strategy.name is missing: each file in conf/strategy/",
            ),
            ({"name": "mine"}, "strategy._target_ is missing"),
        ],
    ),
)
def test_mistakes_in_the_yaml(project: Project, content: dict[str, object], said: str) -> None:
    project.write("conf/strategy/mine.yaml", yaml.safe_dump(content))
    run = project.run("strategy=mine")
    assert run.code == 1 and said in run.err and run.err.count("\n") == 1, run.err


def test_a_mistake_in_an_experiment(project: Project) -> None:
    text = "# @package _global_\ndefaults:\n  - override /strategy: mine\nstrategy:\n  hiden: 3\n"
    project.write("conf/experiment/one.yaml", text)
    run = project.run("experiment=one")
    assert run.code == 1 and "did you mean strategy.hidden?" in run.err
