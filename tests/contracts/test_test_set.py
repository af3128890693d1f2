"""The test set decides nothing: not for any option of conf/train, not for fine-tuning after pruning
or in quantization, not for a search.

Each is made with the test images that are there and with others whose labels are wrong, and gives
the same bytes. A third time the others are the *validation* images, and the bytes differ: code that
chooses by the test set would choose something else, too, and be found here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import config
from pipeline.artifacts import Arrays, write_npz, write_text
from pipeline.datasets.synthetic import Synthetic
from pipeline.home import ROOT
from pipeline.metrics import SCORE
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.small_cnn import SmallCnn
from pipeline.training.environment import Run
from pipeline.training.loop import to_csv
from pipeline.training.recipe import ACCURACY_FLOAT, ThreePhases
from tests.pruning.networks import DATA as SMALL
from tests.pruning.networks import MODEL, PLANNER, weights
from tests.runner.test_early import composed
from tests.runner.test_halving import Told, told
from tests.tiers import quick

Made = Callable[[Arrays], Mapping[str, Any]]
DATA = Synthetic(train=300).arrays()
RUNGS = ["train.batch=32", "train.batch=16"]
LENGTHS = {
    "epochs": 4, "float_epochs": 4, "quantized_epochs": 4, "frozen_epochs": 4, "batch": 16,
    "probe_float_epochs": 2, "probe_quantized_epochs": 1, "polish_sweeps": 1, "copies": 2,
    "teacher": [[4, 3, 2]], "teacher_pooled": [], "teacher_epochs": 2, "device": "cpu", "images": 0,
}  # fmt: skip
LEARNING = sorted(
    path.stem
    for path in (ROOT / "conf" / "train").glob("*.yaml")
    if path.stem not in ("random", "released")
)


def others(data: Arrays) -> tuple[Arrays, Arrays]:
    """The validation images as they are, and changed, with labels that are wrong."""
    images, labels = data["validation_images"], data["validation_labels"]
    return {"images": images, "labels": labels}, {
        "images": 255 - images,
        "labels": (labels + 1) % (int(labels.max()) + 1),
    }


def decides_nothing(made: Made, data: Arrays) -> None:
    right, wrong = others(data)
    first, second, chosen = (
        dict(made(data | {f"{part}_{key}": value for key, value in images.items()}))
        for part, images in (("test", right), ("test", wrong), ("validation", wrong))
    )
    if ACCURACY_FLOAT in first:
        assert first.pop(ACCURACY_FLOAT) != second.pop(ACCURACY_FLOAT)
    assert equal(first, second)
    assert not equal(*({**each, SCORE: 0} for each in (first, chosen)))


def equal(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize("name", quick(["float", "smoke"], LEARNING))
def test_of_a_recipe(name: str) -> None:
    node = dict(composed(f"train={name}")["train"])
    cut = {key: value for key, value in LENGTHS.items() if key in node}
    if not node.get("teacher"):
        cut.pop("teacher", None)
    recipe = config.instantiate({**node, **cut})
    model = Mnist2kb(channels=(3, 4))
    decides_nothing(lambda data: recipe.train(model, data, Run(1)).weights, DATA)


LIMITS = {"magnitude": {}, "width": {"width": 0.6}, "pex": {"pmu_bytes": 4500, "gate_epochs": 2}}


@pytest.mark.ci
@pytest.mark.parametrize("name", LIMITS)
def test_of_fine_tuning_after_pruning(name: str) -> None:
    node = composed(f"prune={name}", "prune.pmu_bytes=1")["prune"]
    changes = {**LIMITS[name], "pmu_bytes": 0, "epochs": 4, "batch": 16, "rate": 0.1}
    method = config.instantiate({**node, **PLANNER, **changes, **LIMITS[name]})
    decides_nothing(lambda data: method.prune(MODEL, weights(), data, Run(1)).weights, SMALL)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["int8_qat", "int8_accumulators"])
def test_of_quantization_that_trains(name: str) -> None:
    changes = {"images": 16, "rate": 0.02, "batch": 32, "threads": 1}
    method = config.instantiate({**composed(f"quantize={name}")["quantize"], **changes})

    def made(data: Arrays) -> Mapping[str, Any]:
        return {"graph": method.graph("net", MODEL, weights(), data).hash}

    decides_nothing(made, SMALL)


class Trains(Told):
    """A search whose trainings are real ones, with these ``images``."""

    images: Arrays

    def _round(self, jobs: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        results = super()._round(jobs)
        for job, result in zip(jobs, results, strict=True):
            if "until=train" not in job:
                continue
            words = dict(word.split("=", 1) for word in job)
            keys = ("convolutions", "pooled", "bits", "input_pool")
            model = SmallCnn(**{key: json.loads(words[f"model.{key}"]) for key in keys})
            recipe = ThreePhases(2, 0, 0, batch=int(words["train.batch"]))
            trained = recipe.train(model, self.images, Run(1))
            folder = Path(result["run_dir"])
            write_npz(folder / "weights.npz", trained.weights)
            write_text(folder / "training.csv", to_csv(trained.rows))
        return results


@pytest.mark.ci
def test_of_a_search_for_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(data: Arrays) -> Mapping[str, Any]:
        monkeypatch.setattr(Trains, "images", data, raising=False)
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        options = {"networks": 8, "generations": 1, "children": 2}
        search, found = told(folder, [], made=Trains, rungs=RUNGS, **options)
        return {"jobs": json.dumps(search.jobs), "found": json.dumps(found)}

    decides_nothing(made, Synthetic(train=100).arrays())
