"""The test set decides nothing: not for any option of conf/train, not for fine-tuning after pruning
or for quantization, not for a search. All of these work without one, and give the same bytes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import config
from pipeline.artifacts import Arrays, write_npz
from pipeline.datasets.dataset import seen
from pipeline.datasets.synthetic import Synthetic
from pipeline.home import ROOT
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.pruning.chain import Chain
from pipeline.pruning.work import Work
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from pipeline.training.recipe import ACCURACY_FLOAT
from tests.pruning.networks import DATA as SMALL
from tests.pruning.networks import MODEL, PLANNER, weights
from tests.runner.test_early import composed
from tests.runner.test_halving import Told, told
from tests.tiers import quick

DATA = Synthetic(train=128).arrays()
CHAIN = Mnist2kb(channels=(3, 4))
SHORT = {
    "epochs": 2, "float_epochs": 2, "quantized_epochs": 2, "frozen_epochs": 2, "batch": 32,
    "probe_float_epochs": 1, "probe_quantized_epochs": 1, "polish_sweeps": 1, "copies": 1,
    "teacher_pooled": [], "teacher_epochs": 1, "teachers": 1, "device": "cpu",
}  # fmt: skip
ONE_A_CLASS = ["paper_short", "released", "smoke"]
OPTIONS = sorted(path.stem for path in (ROOT / "conf" / "train").glob("*.yaml"))
RECIPES = [*ONE_A_CLASS, *(name for name in OPTIONS if name not in ONE_A_CLASS)]
PRUNING = {"magnitude": {}, "width": {"width": 0.6}, "pex": {"pmu_bytes": 4500, "gate_epochs": 1}}


class Sealed(dict[str, Any]):
    """Data whose test set can't be looked at."""

    def __init__(self, data: Arrays) -> None:
        super().__init__(seen(data))

    def __missing__(self, key: str) -> Any:
        raise AssertionError(f"{key} is looked at")

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key.startswith("test_") else super().get(key, default)


def decided(weights: Arrays) -> Mapping[str, Any]:
    return {name: values for name, values in weights.items() if name != ACCURACY_FLOAT}


def equal(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


def recipe(name: str) -> Any:
    node = dict(composed(f"train={name}", "model=mnist_2kb", "data=mnist")["train"])
    short = {key: value for key, value in SHORT.items() if key in node}
    return config.instantiate(
        node | short | ({"teacher": [[4, 3, 2]]} if node.get("teacher") else {})
    )


@pytest.mark.parametrize("name", quick(["float_short", "random"], RECIPES, ci=len(ONE_A_CLASS)))
def test_of_a_recipe(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, model = recipe(name), Mnist2kb() if name == "released" else CHAIN
    alone = made.fit(model, Sealed(DATA), Run(1))
    given: list[Arrays] = []
    fit = type(made).fit
    monkeypatch.setattr(type(made), "fit", lambda *all_: (given.append(all_[2]), fit(*all_))[1])
    whole = made.train(model, DATA, Run(1))
    assert not any(key.startswith("test_") for key in given[0])
    assert alone.rows == whole.rows and equal(decided(alone.weights), decided(whole.weights))
    assert (alone.evaluate is not None) == made.needs_data
    assert ACCURACY_FLOAT in whole.weights or name == "random"


@pytest.mark.ci
@pytest.mark.parametrize("name", PRUNING)
def test_of_fine_tuning_after_pruning(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    node = composed(f"prune={name}", "prune.pmu_bytes=1")["prune"]
    changes = {"pmu_bytes": 0, "epochs": 2, "batch": 64, **PRUNING[name]}
    method = config.instantiate({**node, **PLANNER, **changes})
    whole = method.prune(MODEL, weights(), SMALL, Run(1))
    monkeypatch.setattr(Work, "accuracy", None)
    alone = method.prune(MODEL, weights(), seen(SMALL), Run(1))
    assert ACCURACY_FLOAT in whole.weights and alone.epochs == whole.epochs
    assert equal(alone.weights, decided(whole.weights))


def test_of_fine_tuning_a_chain() -> None:
    before = RandomWeights().train(CHAIN, {}, Run(1)).weights
    Chain(0.3, 2, 0.0, 32).prune(CHAIN, before, Sealed(DATA), Run(1))


@pytest.mark.parametrize("name", quick(["int8"], ["int8_qat", "int8_accumulators", "int8"]))
def test_of_quantization(name: str) -> None:
    node = composed(f"quantize={name}")["quantize"]
    short = {"images": 16, "epochs": 1, "batch": 64, "threads": 1}
    method = config.instantiate({**node, **{k: v for k, v in short.items() if k in node}})
    alone, whole = (method.graph("net", MODEL, weights(), data) for data in (Sealed(SMALL), SMALL))
    assert alone.hash == whole.hash


class Judged(Told):
    """A search whose accuracy on the test set is the better, the worse it is on validation's."""

    def _round(self, jobs: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        results = super()._round(jobs)
        for result in results:
            worse = np.array(1 - result["pmu_bytes"] / 100)
            write_npz(Path(result["run_dir"]) / "weights.npz", {ACCURACY_FLOAT: worse})
            result |= {"accuracy_float": float(worse), "accuracy_int": float(worse)}
        return results


def test_of_a_search_for_networks(tmp_path: Path) -> None:
    plain, judged = (
        told(tmp_path / made.__name__, [], made=made, generations=1, children=5)
        for made in (Told, Judged)
    )
    assert plain[0].jobs == judged[0].jobs and plain[1] == judged[1]
