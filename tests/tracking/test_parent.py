"""A sweep's parent run in MLflow: table and picture, its jobs below, whatever became of them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from urllib.parse import urlparse

import pytest
import yaml

from pipeline.runner.progress import KILLED
from tests.runner.project import STRATEGY, Project
from tests.tracking.database import runs
from tests.tracking.test_tracking import project  # noqa: F401  a fixture

SWEEP = ("-m", "tracking=wait", "output=json", "hydra/launcher=local")


@pytest.mark.slow
def test_the_parent_holds_the_table_and_the_picture(project: Project) -> None:  # noqa: F811
    project.write("pipeline/strategies/mid.py", STRATEGY.format(title="Mid", pmu=500))
    option = {"name": "mid", "_target_": "pipeline.strategies.mid.Mid"}
    project.write("conf/strategy/mid.yaml", yaml.safe_dump(option))
    done = project.run(*SWEEP, "strategy=herringbone,mid,naive")
    assert done.code == 0, done.err
    (parent,) = [run for run in runs(project) if "mlflow.parentRunId" not in run["tags"]]
    jobs = [run for run in runs(project) if run is not parent and run["id"] != parent["id"]]
    assert {run["tags"]["mlflow.parentRunId"] for run in jobs} == {parent["id"]} and len(jobs) == 3
    files = {"table.csv", "table.json", "pareto.png", "result.json", "multirun.yaml"}
    assert files <= set(parent["artifacts"]) and parent["status"] == "FINISHED"
    folder, kept = Path(done.json["run_dir"]), Path(urlparse(parent["uri"]).path)
    for name in files:
        assert (kept / name).read_bytes() == (folder / name).read_bytes()
    assert (kept / "pareto.png").read_bytes().startswith(b"\x89PNG")
    with (kept / "table.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["strategy"] for row in rows] == ["herringbone", "mid", "naive"]
    assert [row["status"] for row in rows] == ["ok", "ok", "infeasible"]
    assert [float(row["pmu_bytes"]) for row in rows] == [400, 500, 3000]
    assert rows[2]["needed_bytes"] == "3000" and rows[0]["needed_bytes"] == ""
    assert json.loads((kept / "table.json").read_text())[1]["run_dir"] == rows[1]["run_dir"]


@pytest.mark.slow
def test_a_killed_job_leaves_its_parent_whole(project: Project) -> None:  # noqa: F811
    project.hold("simulate")
    process = project.start(*SWEEP, "target.images=1,2,3")
    project.worker(1).kill()
    project.release("simulate")
    out, err = process.communicate()
    assert process.returncode == 1, err
    (parent,) = [run for run in runs(project) if "mlflow.parentRunId" not in run["tags"]]
    assert parent["status"] == "FAILED" and "table.csv" in parent["artifacts"]
    table = json.loads((Path(urlparse(parent["uri"]).path) / "table.json").read_text())
    assert [row.get("error") for row in table] == [None, KILLED, None]
    assert json.loads(out)["jobs"][1]["error"] == KILLED
    jobs = [run for run in runs(project) if "mlflow.parentRunId" in run["tags"]]
    ended = sorted((run["params"]["target.images"], run["status"]) for run in jobs)
    assert ended == [("1", "FINISHED"), ("2", "KILLED"), ("3", "FINISHED")]
