"""A run's network as a model: where it is loaded there is no more of the project than its files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipeline.artifacts import write_json, write_npz
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.frames import stored
from pipeline.graph.graph import Graph
from pipeline.home import ROOT
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import shared_library
from pipeline.targets.predictor import SWAPS, export
from tests.codegen.int8.configurations import network
from tests.codegen.int8.support import host
from tests.comparing import equal
from tests.runner.project import clean_environment

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
    (run / "generated").mkdir(parents=True)
    for name, text in generate(graph, Ordinary().plan(graph, host()), host(), {}).items():
        (run / "generated" / name).write_text(text)
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
    """What the program ``source`` prints in ``folder``; the project is found only from ROOT."""
    env = clean_environment() | ({"PYTHONPATH": str(ROOT)} if source == LOG else {})
    command = [sys.executable, "-W", "ignore", "-c", source, *words]
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def check(graph: Graph, folder: Path) -> None:
    """Assert that ``folder`` has what the reference gives for its images."""
    image, output = graph.tensors[graph.input], graph.tensors[graph.output]
    frames = stored(np.load(folder / "images.npy"), image)
    found, real = np.load(folder / "integers.npy"), np.load(folder / "real.npy")
    equal(found, graph.outputs(frames.astype(np.int64)))
    assert real.dtype == np.float32 and np.allclose(real, output.real(found))


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
