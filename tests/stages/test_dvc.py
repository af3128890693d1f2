"""DVC as its users use it, in a fresh clone."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.stages.clones import cloned, dvc
from tests.stages.conftest import Project

SMOKE = ("-S", "data=synthetic", "-S", "train=smoke", "-S", "target.images=3")


@pytest.mark.slow
def test_experiments_metrics_and_plots(small: Project, tmp_path: Path) -> None:
    small.run()
    clone = cloned(small, tmp_path)
    for name, more in (("first", ()), ("second", ("-S", "strategy=replace"))):
        dvc(clone, "exp", "run", "-n", name, *SMOKE, *more)
    table = list(csv.DictReader(dvc(clone, "exp", "show", "--csv").splitlines()))
    found = {row["Experiment"]: row for row in table}
    assert found["first"]["strategy.name"] == "herringbone" and found["first"]["pmu_bytes"]
    assert found["second"]["strategy.name"] == "replace"
    assert "pmu_bytes" in dvc(clone, "metrics", "show")
    lines = [line.split() for line in dvc(clone, "metrics", "diff", "first", "second").splitlines()]
    (line,) = [words for words in lines if "pmu_bytes" in words]
    assert line[2:4] == [found[each]["pmu_bytes"] for each in ("first", "second")]
    dvc(clone, "plots", "show")
    page = (clone / "dvc_plots" / "index.html").read_text()
    assert "memory over time" in page and '"layer": "conv1"' in page
    assert '"validation_accuracy"' in page and '"epoch"' in page


@pytest.mark.slow
def test_repro_of_the_default_parameters(small: Project, tmp_path: Path) -> None:
    clone = cloned(small, tmp_path)
    dvc(clone, "repro")
    assert (clone / "metrics.json").is_file() and (clone / "report.html").is_file()
    dvc(clone, "repro")
