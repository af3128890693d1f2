"""MLflow gets all that a run or a sweep writes, or a reason; and a model that stands alone."""

import csv
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pytest
import yaml

from pipeline.artifacts import write_json, write_npz
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.frames import stored
from pipeline.graph.ends import joined
from pipeline.graph.graph import Graph
from pipeline.home import ROOT
from pipeline.runner.workspace import REPORTS
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import shared_library
from pipeline.targets.predictor import SWAPS, export
from pipeline.tracking.files import LEFT_OUT, WRITTEN, kept
from tests.codegen.int8.support import host, network
from tests.codegen.support import write
from tests.comparing import equal
from tests.programs import said, written
from tests.runner.project import Project, clean_environment
from tests.several import several
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


def left_in(folder: Path) -> set[str]:
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
        assert artifacts(run) == left_in(folder), run["tags"]["mlflow.runName"]
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
    fitting = ("tags.`thimble.status` = 'ok'", "output=json")
    best = project.run("best", "pmu_bytes", *fitting).json["runs"]
    assert [run["pmu_bytes"] for run in best] == [400] * 3
    alike = project.run("compare", best[0]["id"], best[-1]["run_dir"], "output=json").json
    assert alike["differs_first"] in ("config", None) and not alike["plan"]
    assert single["history"]["training/loss"] == [[1, 2.5], [2, 1.5], [3, 0.5]]


def test_what_is_left_out_has_a_reason_or_is_the_users(tmp_path: Path) -> None:
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
def test_no_encrypted_image_is_tracked(tmp_path: Path, security: str, tracked: bool) -> None:
    written(tmp_path, {"dvc.yaml": "stages: {generate: {outs: [generated]}}"})
    card = f'{{"security": "{security}"}}'
    written(tmp_path / "generated", {"card.json": card, "card.img": "", "model.c": ""})
    generated = ["card.json", "model.c"]
    names = [f"generated/{name}" for name in generated] if not tracked else ["generated"]
    assert [str(path.relative_to(tmp_path)) for path in kept(tmp_path)] == ["dvc.yaml", *names]


ALONE = """\
import sys, numpy
sys.path.insert(0, sys.argv[1])
from shared_library import _load_pyfunc
model = _load_pyfunc(sys.argv[1])
images = numpy.load("images.npy")
numpy.save("integers.npy", model.predict(images, {"integers": True}))
numpy.save("real.npy", model.predict(images))
assert not [name for name in sys.modules if name.split(".")[0] in ("pipeline", "mlflow")]
"""
LOG = """\
from pathlib import Path
from mlflow.entities import LoggedModelOutput
from pipeline.tracking.store import Store, model
store, folder = Store(Path("tracking")), Path("run")
config = {group: {"name": group} for group in model.GROUPS}
config["data"] = {"name": "mine", "path": "mine.npz", "_target_": "pipeline.datasets.npz.Npz"}
secret, run = (store.client.create_run(store.experiment).info.run_id for _ in range(2))
assert store._network(secret, folder, config, {"model": "encrypted"}) is None
assert not store.client.get_run(secret).outputs.model_outputs
killed = store.client.create_logged_model(store.experiment, "half", run).model_id
store.client.log_outputs(run, [LoggedModelOutput(killed, 0)])
made = store._network(run, folder, config, {})
assert made != killed and made == store._network(run, folder, config, {})
store.client.delete_run(secret)
print(made)
"""
LOADED = """\
import sys, mlflow, numpy
mlflow.set_tracking_uri(f"sqlite:///{sys.argv[1]}/mlflow.db")
model = mlflow.pyfunc.load_model(f"models:/{sys.argv[2]}")
images = numpy.load("images.npy")
numpy.save("integers.npy", model.predict(images, params={"integers": True}))
numpy.save("real.npy", model.predict(images))
(run,) = mlflow.MlflowClient().search_runs(["1"])
(given,) = run.inputs.dataset_inputs
print(given.dataset.name, given.dataset.digest, given.tags[0].value, given.dataset.source)
print(sys.argv[2] in [each.model_id for each in run.outputs.model_outputs])
assert not [name for name in sys.modules if name.split(".")[0] == "pipeline"]
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A run's folder, with the test images that are to be predicted."""
    graph, run = network(), tmp_path / "run"
    written(run / "generated", generate(graph, Ordinary().plan(graph, host()), host(), {}))
    graph.save(run)
    shape = graph.tensors[graph.input].shape
    images = np.random.default_rng(1).integers(0, 256, (50, *shape), np.uint8)
    data = {"test_images": images, "test_labels": np.zeros(50, np.uint8)}
    data |= {f"{p}_{k}": v[:0] for p in ("train", "validation")
             for k, v in (("images", images), ("labels", data["test_labels"]))}  # fmt: skip
    write_npz(run / "data" / "dataset.npz", data)
    write_json(run / "code.json", {"fetch": {"made": {"data/dataset.npz": "5" * 32}}})
    (tmp_path / "else").mkdir()
    np.save(tmp_path / "else" / "images.npy", images)
    return graph


def called(source: str, folder: Path, *words: str) -> str:
    """Return what ``source`` prints, run in ``folder``; the project is found only from ROOT."""
    env = clean_environment() | ({"PYTHONPATH": str(ROOT)} if source == LOG else {})
    return said([sys.executable, "-W", "ignore", "-c", source, *words], folder, env=env).strip()


def check(graph: Graph, folder: Path) -> None:
    """Assert that ``folder`` has what the reference gives for its images."""
    image, output = graph.tensors[graph.input], graph.tensors[graph.output]
    frames = stored(np.load(folder / "images.npy"), image)
    found, real = np.load(folder / "integers.npy"), np.load(folder / "real.npy")
    equal(found, graph.evaluate(frames.astype(np.int64)))
    assert real.dtype == np.float32 and np.allclose(real, output.real(found))


def test_several_inputs_and_outputs_are_arrays_by_name(tmp_path: Path) -> None:
    graph = several(0)
    write(tmp_path / "generated", generate(graph, Ordinary().plan(graph, host()), host(), {}))
    graph.save(tmp_path)
    ends = [[graph.tensors[n] for n in names] for names in (graph.inputs, graph.outputs)]
    export(tmp_path, tmp_path)
    model, rng = shared_library.Network(tmp_path), np.random.default_rng(0)
    given = {each.name: rng.integers(0, 256, (9, *each.shape), np.uint8) for each in ends[0]}
    frames = joined([stored(given[each.name], each).astype(np.int64) for each in ends[0]])
    values, found = graph.run(frames), model.predict(given)
    assert len(given) > 1 and tuple(found) == graph.outputs and len(found) > 1
    for of in ends[1]:
        equal(model.predict(given, {"integers": True})[of.name], values[of.name])
        assert np.allclose(found[of.name], of.real(values[of.name]))


def test_it_needs_one_file_of_the_project(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    export(tmp_path / "run", tmp_path / "model")
    shutil.copy(shared_library.__file__, tmp_path / "model")
    called(ALONE, tmp_path / "else", str(tmp_path / "model"))
    check(graph, tmp_path / "else")
    (tmp_path / "run" / "generated" / SWAPS).write_text("")
    with pytest.raises(ThimbleError, match="swaps with a card"):
        export(tmp_path / "run", tmp_path)


@pytest.mark.ci
def test_mlflow_loads_it_elsewhere(graph: Graph, tmp_path: Path) -> None:
    """By its id, in another process; the data set is there by name, hash, purpose and origin. What
    a kill left of a model is logged anew, and what is whole is not."""
    model = called(LOG, tmp_path)
    shutil.rmtree(tmp_path / "run")
    told = called(LOADED, tmp_path / "else", str(tmp_path / "tracking"), model)
    data, known = told.splitlines()
    assert data.startswith(f"mine_test {'5' * 32} testing ") and "mine.npz" in data
    assert known == "True"
    check(graph, tmp_path / "else")
