"""Published tables beside ours: which job a row is for, and jobs that are no combination."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from pipeline.home import ROOT
from pipeline.runner.results import rows, unpublished
from pipeline.runner.screen import published
from tests.runner.project import Project

CONFIG: dict[str, Any] = {
    "model": {"name": "net", "input_shape": [80, 80, 3]},
    "strategy": {"name": "partial", "accumulator_bits": 8},
}
RESULT = {"strategy": "partial", "pmu_bytes": 5.0}


@pytest.mark.parametrize(
    ("keys", "matches"),
    [
        ({}, True),
        ({"strategy": "partial"}, True),
        ({"strategy": "ordinary"}, False),
        ({"model": "net", "model.input_shape": [80, 80, 3], "strategy.accumulator_bits": 8}, True),
        ({"model": "net", "model.input_shape": [96, 96, 3]}, False),
        ({"strategy.accumulator_bits": 16}, False),
        ({"strategy.unknown": 1}, False),
    ],
)
def test_a_row_is_for_jobs_with_its_values(keys: dict[str, Any], matches: bool) -> None:
    row = {"name": "a", "metric": "pmu_bytes", "paper": 4, **keys}
    expected = {"name": "a", "metric": "pmu_bytes", "paper": 4, "ours": 5.0}
    assert rows([row], RESULT, CONFIG) == ([expected] if matches else [])


def test_what_is_not_published_is_printed_and_no_row() -> None:
    paper = [{"name": "theirs", "paper": "7 kB"}]
    assert rows(paper, RESULT, CONFIG) == []
    (line,) = published({"unpublished": unpublished(paper)})
    assert line == "  theirs: 7 kB published, of a network that is not"


@pytest.mark.ci
def test_lines_of_jobs(project: Project) -> None:
    text = (
        "# @package _global_\nuntil: fetch\nhydra:\n  mode: MULTIRUN\n  sweeper:\n"
        "    params: {seed: '1,2'}\n    jobs:\n      - strategy=naive hardware=arduino\n"
        "      - strategy=herringbone hardware=big\n"
    )
    project.write("conf/experiment/lines.yaml", text)
    run = project.run("experiment=lines", "output=json")
    assert run.code == 0, run.err
    told = [(job["strategy"], job["hardware"]) for job in run.json["jobs"]]
    assert told == [("naive", "arduino")] * 2 + [("herringbone", "big")] * 2
    assert len({tuple(job["overrides"]) for job in run.json["jobs"]}) == 4


@pytest.mark.parametrize("name", ["pex_table3", "pex_table4", "pex_appendix_d"])
def test_every_row_of_pex_has_a_job(name: str) -> None:
    """And every job a row of each metric: those of one metric and jobs are lists side by side."""
    content = yaml.safe_load((ROOT / "conf" / "experiment" / f"{name}.yaml").read_text())
    published_rows = [row for row in content["paper"] if "metric" in row]
    jobs = [dict(w.split("=", 1) for w in j.split()) for j in content["hydra"]["sweeper"]["jobs"]]
    for metric in {row["metric"] for row in published_rows}:
        of_metric = [row for row in published_rows if row["metric"] == metric]
        for row, job in zip(of_metric, jobs, strict=True):
            for key in row.keys() - {"name", "metric", "paper"}:
                assert key not in job or yaml.safe_load(job[key]) == row[key]


def test_rows_of_layers_and_of_what_follows_from_other_figures() -> None:
    traffic = [{"layer": "a", "mops": 1.0}, {"layer": "b", "mops": 2.0}]
    result = {"strategy": "swap", "traffic": traffic}
    paper = [{"name": "one", "layer": "b", "metric": "mops", "paper": 2},
             {"name": "net", "layer": "*", "metric": "mops"},
             {"name": "time", "metric": "time_pct", "of": {"wh": [1, 1], "seconds": [2, 3]}},
             ]  # fmt: skip
    found = [(row["name"], row["ours"]) for row in rows(paper, result, CONFIG)]
    assert found == [("one", 2), ("net a", 1), ("net b", 2), ("time", 50)]
