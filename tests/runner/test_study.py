"""Other values of keys are jobs of their own."""

from __future__ import annotations

import pytest

from pipeline.report.figures import _panels, _places
from pipeline.runner.sweeper import variants
from tests.runner.project import Project

STUDY = [{"strategy.buffer_bytes": 16, "seed": 2}, {"strategy.scheduler": "best"}]


def test_each_set_of_values_is_one_more_job() -> None:
    job = ["model=a", "strategy.buffer_bytes=8", "strategy.scheduler=swapnn"]
    assert variants(job, STUDY) == [
        (job, {}),
        (["model=a", "strategy.scheduler=swapnn", "strategy.buffer_bytes=16", "seed=2"], STUDY[0]),
        (["model=a", "strategy.buffer_bytes=8", "strategy.scheduler=best"], STUDY[1]),
    ]


def test_a_job_may_go_without() -> None:
    assert variants(["model=a", "study=[]"], STUDY) == [(["model=a"], {})]
    assert variants(["model=a"], []) == [(["model=a"], {})]


def test_a_job_and_its_study_are_one_panel() -> None:
    jobs = [{"n": 1, "y": 5}, {"n": 2, "y": 6, "set": STUDY[0]}, {"n": 3, "y": 7, "set": STUDY[1]},
            {"n": 4, "y": 8, "set": {}}]  # fmt: skip
    panels = _panels(jobs)
    assert [[job["n"] for job in panel] for panel in panels] == [[1, 2, 3], [4]]
    spec = {"each": "study", "y": ["y"], "keys": ["strategy.scheduler"]}
    assert [name for name, _ in _places(panels[0], spec)] == ["as the job", "scheduler best"]


@pytest.mark.ci
def test_a_sweep_has_a_job_with_stages_of_its_own_for_each(project: Project) -> None:
    paper = "paper=[{name: x, metric: pmu_bytes, paper: 1, hardware.sram_bytes: 1999}]"
    study = "study=[{hardware.sram_bytes: 1999}]"
    words = ("until=schedule", "strategy=herringbone", study, paper)
    run = project.run("-m", "output=json", *words)
    jobs = run.json["jobs"]
    assert [job["set"] for job in jobs] == [{}, {"hardware.sram_bytes": 1999}]
    ran = project.ran()
    assert ran.count("train") == 1 and ran.count("schedule") == 2
    assert [row["ours"] for row in run.json["rows"]] == [jobs[1]["pmu_bytes"]]
