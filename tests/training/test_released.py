"""Released weights: their provenance, and how they are made."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from pipeline import config
from pipeline.artifacts import Arrays, read_npz, write_json, write_npz, write_text
from pipeline.datasets.cifar10 import Cifar10
from pipeline.datasets.fashion_mnist import FashionMnist
from pipeline.datasets.mnist import Mnist
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.metrics import SCORE
from pipeline.models.blocks import Blocks
from pipeline.models.google12 import Google12
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import state_arrays
from pipeline.quantize.int4 import Int4
from pipeline.quantize.parameters import to_arrays
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training import release, released
from pipeline.training.environment import Run
from pipeline.training.recipe import ACCURACY_FLOAT
from pipeline.training.release import accuracy
from pipeline.training.released import FOLDER, Released, integers, provenance, real
from tests.comparing import equal
from tests.tiers import quick

EVERY = sorted(
    (path.stem for path in FOLDER.glob("*.npz")), key=lambda name: ("cifar" in name, name)
)
NAMES = [name for name in EVERY if "accuracy_int_test" in provenance(name)]
FLOATS = [name for name in EVERY if name not in NAMES]
SETS = {"mnist": Mnist, "fashion_mnist": FashionMnist, "cifar10": Cifar10}


BLOCKS = [{"kind": "conv", "channels": 4, "stride": 4}, {"kind": "conv", "channels": 6}]
NETWORK: dict[str, Any] = {"input_shape": [28, 28, 1], "classes": 10, "blocks": BLOCKS}
RAN_ON = dict.fromkeys(release.ENVIRONMENT, "x")


def workspace(run: Path, cfg: dict[str, Any], weights: Arrays, data: Arrays) -> None:
    """As a training leaves it."""
    write_text(run / "params.yaml", yaml.safe_dump(cfg))
    write_npz(run / "weights.npz", weights)
    write_npz(run / "data" / "dataset.npz", data)
    took = {"train": {"seconds": 61.4}}
    write_json(run / "result.json", {"overrides": [f"seed={cfg['seed']}"], "stages": took})
    ran_on = RAN_ON | {"code_version": "0123456789", "typed": "here"}
    write_json(run / "code.json", {"environment": ran_on})


def trained(model: Mnist2kb) -> QuantizedNetwork:
    torch.manual_seed(0)
    network = QuantizedNetwork(model.build())
    with torch.no_grad():
        for layer in network.quantized.values():
            layer.bias.normal_(0, 0.1)
    network.calibrate(torch.rand(20, 1, 14, 14))
    return network


@pytest.mark.parametrize("name", quick(0, EVERY, ci=1))
def test_the_test_accuracy_is_what_the_provenance_says(name: str) -> None:
    """Recomputed from the repository's weights: exactly, or in float, but for last bits."""
    told, (called, data_set, *_) = provenance(name), name.split("-")
    try:
        data = SETS[data_set](validation=told["images_validation"]).arrays()
    except ThimbleError as error:
        pytest.skip(f"the test images cannot be had: {error}")
    model = config.instantiate(yaml.safe_load(Path(f"conf/model/{called}.yaml").read_text()))
    weights = Released(name).train(model, {}, Run()).weights
    if name in NAMES:
        graph, within = Int4().graph(name, model, weights), 0.0
        found = [accuracy(graph, data, part) for part in ("test", "validation")]
        wanted = [told["accuracy_int_test"], told["accuracy_int_validation"]]
    else:
        found = [release.accuracy_float(model, weights, data, p) for p in ("test", "validation")]
        wanted, within = [told["accuracy_float"], told["accuracy_float_validation"]], 3e-4
    assert len(data["test_labels"]) == 10_000 and found == pytest.approx(wanted, rel=0, abs=within)


@pytest.mark.parametrize("name", EVERY)
def test_every_look_at_the_test_set_is_counted(name: str) -> None:
    told = provenance(name)
    assert (FOLDER / f"{name}.npz").stat().st_size < (40_000 if name in NAMES else 500_000)
    assert {"command", "commit", "seed", "threads", "train", "wall_seconds"} <= told.keys()
    assert Path(f"conf/train/{told['train']['name']}.yaml").is_file()
    looks = told["looks_at_test"]
    (last,) = (look for look in looks if look["at"] == "released")
    assert last["accuracy"] == told["accuracy_int_test" if name in NAMES else "accuracy_float"]
    for look in looks:
        assert look["accuracy"] is not None or look["networks"] > 0
    before = [look["accuracy"] for look in looks if look["at"] == "before quantization"]
    assert told["accuracy_float"] in (before if name in NAMES else [last["accuracy"]])


def test_it_is_the_same_graph_as_before_it_was_packed() -> None:
    model = Mnist2kb()
    weights = to_arrays(trained(model))
    again = real({name: values.copy() for name, values in integers(model, weights).items()})
    images = Synthetic().arrays()["test_images"].astype(np.int64)
    before, after = (Int4().graph("net", model, each) for each in (weights, again))
    assert before.tensors == after.tensors and before.operators == after.operators
    for name, values in before.constants.items():
        equal(values, after.constants[name], name=name)
    equal(before.evaluate(images), after.evaluate(images))
    # and what a release stores is what a release of the released stores
    name = "mnist_2kb-mnist"
    again = integers(Mnist2kb(), Released(name).train(Mnist2kb(), {}, Run()).weights)
    stored = read_npz(FOLDER / f"{name}.npz")
    assert again.keys() == stored.keys()
    for key, values in stored.items():
        assert again[key].dtype == values.dtype and np.array_equal(again[key], values), key


def test_a_network_in_float_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its weights rounded to half precision, by a name that has its seed."""
    run, folder, model = tmp_path / "run", tmp_path / "released", Blocks(**NETWORK)
    torch.manual_seed(3)
    weights = state_arrays(model.build()) | {ACCURACY_FLOAT: np.array(0.5)}
    cfg = yaml.safe_load(Path("params.yaml").read_text())
    cfg["model"] = {"_target_": "pipeline.models.blocks.Blocks", "name": "net", **NETWORK}
    cfg["train"] = {"_target_": "pipeline.training.float_only.FloatOnly", "name": "float"}
    cfg["seed"] = 3
    data = Synthetic(train=30).arrays()
    workspace(run, cfg, weights, data)
    name = release.release(run, folder)
    assert name == f"net-{cfg['data']['name']}-3"
    monkeypatch.setattr(released, "FOLDER", folder)
    told, again = provenance(name), Released(name).train(model, {}, Run()).weights
    chosen = Released(name.removesuffix("-3")).train(model, {}, Run(seed=3)).weights
    assert all(np.array_equal(chosen[key], values) for key, values in again.items())
    assert told["accuracy_float"] == float(again[ACCURACY_FLOAT])
    assert told["accuracy_float"] == release.accuracy_float(model, again, data, "test")
    assert again.keys() == weights.keys()
    for key, values in again.items():
        assert values.dtype == weights[key].dtype
        assert np.allclose(values, weights[key], rtol=1e-3, atol=1e-6) or key == ACCURACY_FLOAT
    with pytest.raises(ThimbleError, match=r"the weights lack|have shape"):
        Released(name).train(Blocks(**{**NETWORK, "classes": 3}), {}, Run())


def test_what_is_not_released_is_one_clear_line() -> None:
    model = Google12(input_shape=(28, 28, 1), joined=2, channels=(3, 4), units=(4,))
    with pytest.raises(ThimbleError, match="chains are released"):
        integers(model, to_arrays(QuantizedNetwork(model.chain())))
    with pytest.raises(ThimbleError, match=r"no weights for mnist_2kb-cifar10, there are .*mnist"):
        Released("mnist_2kb-cifar10").train(Mnist2kb(), {}, Run())
    with pytest.raises(ThimbleError, match=r"conv2\.weight of shape \[8, 5, 3, 3\], the model"):
        Released("mnist_2kb-mnist").train(Mnist2kb(channels=(5, 9, 11)), {}, Run())


def test_a_run_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a workspace to the weights that ``train=released`` loads."""
    run, folder = tmp_path / "run", tmp_path / "released"
    data = Synthetic(train=30).arrays()
    figures = {ACCURACY_FLOAT: np.array(0.5), SCORE: np.array(0.25)}
    weights = to_arrays(trained(Mnist2kb())) | figures
    cfg = yaml.safe_load(Path("params.yaml").read_text())
    cfg["train"] = {"_target_": "pipeline.training.paper.Paper", "name": "paper", "trials": [1]}
    cfg["seed"] = 7
    workspace(run, cfg, weights, data)
    assert release.release(run, folder) == "mnist_2kb-mnist"
    assert release.release(run, folder, ["resumed once"]) == "mnist_2kb-mnist"
    monkeypatch.setattr(released, "FOLDER", folder)
    told = provenance("mnist_2kb-mnist")
    assert told["seed"] == 7 and told["wall_seconds"] == 61
    assert told["command"] == "python run.py seed=7"
    assert told["train"] == {"name": "paper", "trials": [1]}
    assert told["commit"] == "0123456" and told["environment"] == RAN_ON
    assert told["images_validation"] == len(data["validation_labels"])
    assert told["score_validation"] == 0.25 and told["notes"] == ["resumed once"]
    looks = [(look["at"], look["accuracy"]) for look in told["looks_at_test"]]
    assert [at for at, _ in looks] == [
        "before quantization", "replaced", "before quantization", "released"
    ]  # fmt: skip
    assert looks[0][1] == 0.5 and looks[3][1] == told["accuracy_int_test"]
    again = Released("mnist_2kb-mnist").train(Mnist2kb(), {}, Run()).weights
    assert float(again[ACCURACY_FLOAT]) == 0.5
    graph = Int4().graph("net", Mnist2kb(), again)
    assert told["accuracy_int_test"] == accuracy(graph, data, "test")
    assert read_npz(folder / "mnist_2kb-mnist.npz")["dense.weight"].dtype == np.int8
