"""Every file in conf/experiment and conf/sweep runs: on random weights, images that are made up and
two of them on the device. A new file is picked up by itself.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
import yaml
from hydra.types import RunMode
from omegaconf import OmegaConf

from pipeline.home import ROOT
from pipeline.runner import schema
from pipeline.runner.job import resolved
from pipeline.runner.workspace import params_text
from tests.runner import parent
from tests.stages.conftest import Project
from tests.stages.test_experiments import FILES
from tests.tiers import quick

MADE_UP = {
    "mnist": ("data=synthetic",),
    "fashion_mnist": ("data=synthetic",),
    "cifar10": ("data=synthetic", "data.shape=[32,32,3]"),
    "spoken_keywords": ("data=tones",),
}
"""What stands in for the images of a data set that has to be downloaded."""


def composed(*overrides: str) -> Any:
    return schema.composed(*overrides, hydra=True)


def text(override: str) -> str:
    """Of the file and the one of its group that it starts from: composing all of them would delay
    every start of the tests by ten seconds."""
    group, name = override.split("=")
    content = (ROOT / "conf" / group / f"{name}.yaml").read_text()
    starts = [str(each) for each in yaml.safe_load(content).get("defaults", ())]
    siblings = [each for each in starts if each.isidentifier() and each != "_self_"]
    return "\n".join([content, *(text(f"{group}={each}") for each in siblings)])


SMALL = [file for file in FILES if "model" not in text(file)]
"""Planning a larger network than the default one takes too long for the default tests."""
SWEEPS = [file for file in FILES if "MULTIRUN" in text(file)]
QUICK = [file for file in SMALL if file.startswith("sweep=")]
"""An experiment's sweep is dozens of jobs; the others of SMALL are in test_experiments.py."""
TO_THE_END = [file for file in SWEEPS if file in SMALL and "until:" not in text(file)]


def first_job(override: str) -> Any:
    """The file's config with the groups of its first job, whose model may need no data."""
    sweeper = composed(override).hydra.sweeper
    lines = [word.split("=", 1) for word in (sweeper.get("jobs") or [""])[0].split()]
    given = dict(lines) | {key: str(value) for key, value in (sweeper.get("params") or {}).items()}
    words = [
        f"{key}={given[key].split(',')[0]}" for key in ("model", "data", "train") if key in given
    ]
    return composed(override, *words)


def run(project: Project, override: str, *args: str) -> Any:
    """The result of the file on its stand-in; an experiment that does not fit exits with 3."""
    choices = first_job(override).hydra.runtime.choices
    words = [override, *MADE_UP.get(choices["data"], ()), "target.images=2", *args]
    if choices["train"] != "none":
        words.append("train=random")
    command = [sys.executable, ROOT / "run.py", *words, "tracking=none", "output=json"]
    done = parent.run(command, cwd=project.folder, env=project.env)
    assert done.returncode in (0, 3) and done.stdout.count("\n") == 1, done.stderr
    return json.loads(done.stdout)


def check(result: Any, override: str) -> None:
    jobs = result.get("jobs", [result])
    assert {job["status"] for job in jobs} <= {"ok", "infeasible"}
    assert all(job["pmu_bytes"] > 0 for job in jobs)
    assert bool(composed(override).paper) == ("rows" in result)
    assert all(row["ours"] is not None for job in jobs for row in job.get("rows", ())
               if job["status"] == "ok" and "measure" in job["stages"])  # fmt: skip


@pytest.mark.parametrize("override", quick(8, FILES))
def test_every_file_composes(override: str) -> None:
    """And is what its text says."""
    config = composed(override)
    keys = [str(key) for key in config if key != "hydra"]
    assert "hardware:" in params_text(resolved(OmegaConf.masked_copy(config, keys)))
    jobs = " ".join(config.hydra.sweeper.get("jobs") or ())
    small = config.hydra.runtime.choices["model"] == "mnist_2kb" and "model=" not in jobs
    assert small or override not in SMALL
    assert (override in SWEEPS) == (config.hydra.mode == RunMode.MULTIRUN)
    assert config.until.name == "measure" or override not in TO_THE_END


@pytest.mark.parametrize(
    "override",
    [
        pytest.param(file, marks=pytest.mark.ci if file in QUICK else pytest.mark.slow)
        for file in FILES
    ],
)
def test_it_runs_on_a_stand_in(small: Project, override: str) -> None:
    """Sweeps up to the plan: all their jobs to the end take minutes."""
    check(run(small, override, *(["until=schedule"] if override in SWEEPS else [])), override)


@pytest.mark.slow
@pytest.mark.parametrize("override", TO_THE_END)
def test_a_sweep_runs_to_its_end_on_a_stand_in(small: Project, override: str) -> None:
    result = run(small, override, "hydra/launcher=local")
    check(result, override)
    assert len(result["jobs"]) > 1
