"""MLflow gets everything that a run or a sweep writes; what it does not get has a reason."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
import yaml

from pipeline.home import ROOT
from pipeline.runner.progress import KILLED
from pipeline.runner.workspace import REPORTS
from pipeline.tracking.files import LEFT_OUT, WRITTEN, kept
from tests.runner.project import Project
from tests.tracking.database import runs

TRAINING = """\
from pathlib import Path

from pipeline.fake import make
from stages._main import run

HEADER = "epoch,phase,loss,validation_accuracy"
ROWS = (HEADER, "1,float,2.5,0.25", "2,float,1.5,0.5", "3,frozen,0.5,0.75")


def main() -> None:
    make()
    Path("training.csv").write_text("\\n".join(ROWS))
    Path("plan.html").write_text("<p>a page</p>")


run(main)
"""

OUTS = [
    out.split("/")[0]
    for name, stage in yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"].items()
    for out in stage["outs"]
    if name != "code"
]


def written(folder: Path) -> set[str]:
    """Every file in ``folder`` that has to be an artifact: not LEFT_OUT, not of a sweep's job."""
    jobs = {place.name for place in folder.iterdir() if (place / "dvc.yaml").exists()}
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if path.parts[0] not in LEFT_OUT.keys() | jobs}


def artifacts(run: dict[str, Any]) -> set[str]:
    """Every artifact of ``run``."""
    place = Path(urlparse(run["uri"]).path)
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def complete(found: list[dict[str, Any]]) -> int:
    """Assert it of each run that MLflow has; returns how many there are."""
    for run in found:
        folder = Path(run["tags"]["thimble.run_dir"])
        assert artifacts(run) == written(folder), run["tags"]["mlflow.runName"]
        for name in artifacts(run):
            kept_there = Path(urlparse(run["uri"]).path) / name
            assert kept_there.read_bytes() == (folder / name).read_bytes()
    return len(found)


@pytest.mark.slow
def test_every_file_of_a_run_and_of_a_sweep(project: Project) -> None:
    """A stage's new output, too: nobody has to remember a list."""
    project.write("stages/train.py", TRAINING)
    pipeline = yaml.safe_load((project.root / "dvc.yaml").read_text())
    pipeline["stages"]["train"]["outs"].append("plan.html")
    project.write("dvc.yaml", yaml.safe_dump(pipeline, sort_keys=False))
    assert project.run("tracking=wait").code == 0
    sweep = ("-m", "strategy=herringbone,naive", "+paper=[{metric: pmu_bytes, paper: 400}]")
    assert project.run(*sweep, "target.images=1,2", "tracking=wait").code == 0
    found = runs(project)
    assert complete(found) == 6
    (single, parent) = (run for run in found if "mlflow.parentRunId" not in run["tags"])
    if "thimble.sweep" in single["tags"]:
        single, parent = parent, single
    assert {"plan.html", "training.csv", ".stages/fetch.log"} <= artifacts(single)
    assert {"rows.csv", "table.csv", "sweep.json", "result.json"} <= artifacts(parent)
    with (Path(urlparse(parent["uri"]).path) / "table.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    told = [(row["strategy"], row["status"], row["pmu_bytes"], row["needed_bytes"]) for row in rows]
    assert (
        told
        == [("herringbone", "ok", "400", "")] * 2 + [("naive", "infeasible", "3000", "3000")] * 2
    )
    assert single["metrics"]["training/loss"] == 0.5, "the last of its curve"
    assert single["history"]["training/loss"] == [[1, 2.5], [2, 1.5], [3, 0.5]]


def test_what_is_left_out_has_a_reason_or_is_the_users(
    tmp_path: Path,
) -> None:
    names = {*OUTS, ".dvc", ".jobs"}
    assert all(len(reason) > 20 for reason in LEFT_OUT.values())
    assert LEFT_OUT.keys() <= names and not LEFT_OUT.keys() & {*WRITTEN, *REPORTS}
    (tmp_path / "dvc.yaml").write_text("stages: {train: {outs: [training.csv, weights.npz]}}")
    for name in ("params.yaml", "training.csv", "weights.npz", "tax_return.pdf", "figure.png"):
        (tmp_path / name).write_text("content")
    (tmp_path / "photos").mkdir()
    (tmp_path / ".stages").mkdir()
    names = ["params.yaml", "dvc.yaml", "figure.png", "training.csv"]
    assert [path.name for path in kept(tmp_path)] == names


@pytest.mark.parametrize(("security", "tracked"), [("encrypted", False), ("integrity", True)])
def test_an_image_that_is_to_be_encrypted_is_not_tracked(
    tmp_path: Path, security: str, tracked: bool
) -> None:
    (tmp_path / "dvc.yaml").write_text("stages: {generate: {outs: [generated]}}")
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "card.json").write_text(f'{{"security": "{security}"}}')
    for name in ("card.img", "model.c"):
        (tmp_path / "generated" / name).write_text(name)
    generated = ["card.json", "model.c"]
    names = [f"generated/{name}" for name in generated] if not tracked else ["generated"]
    assert [str(path.relative_to(tmp_path)) for path in kept(tmp_path)] == ["dvc.yaml", *names]


@pytest.mark.slow
def test_a_killed_job_leaves_its_parent_whole(project: Project) -> None:
    project.hold("simulate")
    words = ("-m", "tracking=wait", "output=json")
    process = project.start(*words, "hydra/launcher=local", "target.images=1,2,3")
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
