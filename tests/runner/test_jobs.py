"""What becomes of a sweep's jobs: a study's values, rows of published tables, their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.report import pareto
from pipeline.report.figures import _panels, _places
from pipeline.runner.results import rows, unpublished
from pipeline.runner.screen import published
from pipeline.runner.sweep import compared
from pipeline.runner.sweeper import variants
from pipeline.runner.table import keep
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


def test_rows_of_layers_of_what_follows_from_other_figures_and_of_what_is_not_published() -> None:
    paper = [{"name": "theirs", "paper": "7 kB"}]
    assert rows(paper, RESULT, CONFIG) == []
    (line,) = published({"unpublished": unpublished(paper)})
    assert line == "  theirs: 7 kB published, of a network that is not"
    traffic = [{"layer": "a", "mops": 1.0}, {"layer": "b", "mops": 2.0}]
    result = {"strategy": "swap", "traffic": traffic}
    table = [{"name": "one", "layer": "b", "metric": "mops", "paper": 2},
             {"name": "net", "layer": "*", "metric": "mops"},
             {"name": "time", "metric": "time_pct", "of": {"wh": [1, 1], "seconds": [2, 3]}},
             ]  # fmt: skip
    found = [(row["name"], row["ours"]) for row in rows(table, result, CONFIG)]
    assert found == [("one", 2), ("net a", 1), ("net b", 2), ("time", 50)]


def job(strategy: str, instructions: int | None = None, *words: str, **more: Any) -> dict[str, Any]:
    found = {"strategy": strategy, "overrides": [f"strategy={strategy}", *words], "model": "net"}
    return found | ({"instructions": instructions} if instructions else {}) | more


def test_each_network_has_its_own_ordinary_job() -> None:
    small, large = ("model.input_shape=[1]",), ("model.input_shape=[2]",)
    row = {"name": "a", "metric": "instructions_over_ordinary", "paper": None, "ours": None}
    jobs = compared(
        [
            job("ordinary", 100, *small, pmu_bytes=10),
            job("partial", 110, *small, pmu_bytes=4, rows=[row, row | {"metric": "x"}]),
            job("ordinary", 1000, *large),
            job("partial", 900, *large),
        ]
    )
    assert jobs[1]["instructions_over_ordinary"] == pytest.approx(1.1)
    assert jobs[1]["pmu_over_ordinary"] == 0.4
    assert [row["ours"] for row in jobs[1]["rows"]] == [pytest.approx(1.1), None]
    assert jobs[3]["instructions_over_ordinary"] == 0.9
    assert "pmu_over_ordinary" not in jobs[3]
    alone, without = job("partial", 7, model="other"), job("partial")
    assert compared([alone, without, job("ordinary")])[:2] == [alone, without]


STUDY = [{"strategy.buffer_bytes": 16, "seed": 2}, {"strategy.scheduler": "best"}]


def test_each_set_of_values_is_one_more_job_in_one_panel() -> None:
    job = ["model=a", "strategy.buffer_bytes=8", "strategy.scheduler=swapnn"]
    assert variants(job, STUDY) == [
        (job, {}),
        (["model=a", "strategy.scheduler=swapnn", "strategy.buffer_bytes=16", "seed=2"], STUDY[0]),
        (["model=a", "strategy.buffer_bytes=8", "strategy.scheduler=best"], STUDY[1]),
    ]
    assert variants(["model=a", "study=[]"], STUDY) == [(["model=a"], {})]
    assert variants(["model=a"], []) == [(["model=a"], {})]
    jobs = [{"n": 1, "y": 5}, {"n": 2, "y": 6, "set": STUDY[0]}, {"n": 3, "y": 7, "set": STUDY[1]},
            {"n": 4, "y": 8, "set": {}}]  # fmt: skip
    panels = _panels(jobs)
    assert [[job["n"] for job in panel] for panel in panels] == [[1, 2, 3], [4]]
    spec = {"each": "study", "y": ["y"], "keys": ["strategy.scheduler"]}
    assert [name for name, _ in _places(panels[0], spec)] == ["as the job", "scheduler best"]


@pytest.mark.ci
def test_a_sweep_has_a_job_with_stages_of_its_own_for_each(project: Project) -> None:
    """With lines of jobs, for each of which what params= has is added."""
    text = (
        "# @package _global_\nuntil: schedule\nhydra:\n  mode: MULTIRUN\n  sweeper:\n"
        "    params: {hardware.stack_reserve_bytes: '1,2'}\n"
        "    jobs: [strategy=herringbone hardware=arduino, strategy=herringbone hardware=big]\n"
    )
    project.write("conf/experiment/lines.yaml", text)
    paper = "paper=[{name: x, metric: pmu_bytes, paper: 1, hardware.sram_bytes: 1999}]"
    study = "study=[{hardware.sram_bytes: 1999}]"
    run = project.run("experiment=lines", "output=json", study, paper)
    assert run.code == 0, run.err
    jobs = run.json["jobs"]
    assert [job["hardware"] for job in jobs] == ["arduino"] * 4 + ["big"] * 4
    assert [job["set"] for job in jobs] == [{}, {"hardware.sram_bytes": 1999}] * 4
    assert len({tuple(job["overrides"]) for job in jobs}) == 8
    ran = project.ran()
    assert ran.count("train") == 1 and ran.count("schedule") == 2
    assert [row["ours"] for row in run.json["rows"]] == [jobs[1]["pmu_bytes"]] * 4


def test_a_picture_that_fails_is_said_and_costs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(*_: Any) -> bytes:
        raise ValueError("no finite limits")

    monkeypatch.setattr(pareto, "png", draw)
    job = {"status": "ok", "overrides": [], "run_dir": str(tmp_path / "0")}
    files = [tmp_path / "table.csv", tmp_path / "sweep.html"]
    assert keep(tmp_path, {"jobs": [job]}, None) == files, "there is nothing else to draw"
    assert sorted(tmp_path.iterdir()) == sorted([*files, tmp_path / "table.json"])
    said = capsys.readouterr()
    assert said.err == "pareto.png could not be drawn: no finite limits\n" and not said.out
