from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.artifacts import read_npz, write_npz
from pipeline.errors import ThimbleError
from pipeline.models.google12 import Google12
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import Model
from pipeline.quantize.parameters import from_arrays, to_arrays
from tests.quantize.nets import images, shaken

SHAPE = (28, 28, 1)


WITH_UNITS = Google12(input_shape=(28, 28, 1), joined=2, channels=(3, 4), units=(4,))


@pytest.mark.parametrize("model", [Mnist2kb(), WITH_UNITS], ids=["chain", "units"])
def test_a_network_survives_its_file(model: Model, tmp_path: Path) -> None:
    network = shaken(model.chain(), 1, SHAPE)
    write_npz(tmp_path / "weights.npz", to_arrays(network))
    again = from_arrays(model, read_npz(tmp_path / "weights.npz"))
    pooled = network.pool(images(50, SHAPE, 2))
    with torch.no_grad():
        assert torch.equal(again(pooled), network(pooled))


def test_a_unit_has_a_threshold_of_its_sum() -> None:
    network = shaken(WITH_UNITS.chain(), 1, SHAPE)
    names = set(to_arrays(network))
    assert {"unit1.out_log2", "unit1.first.weight", "unit1.second.out_log2"} <= names
    network.freeze()
    assert all(not t.requires_grad and float(t) % 1 == 0 for t in network.thresholds.values())


def test_names_are_layer_and_kind() -> None:
    arrays = to_arrays(shaken(Mnist2kb().build(), 1, SHAPE))
    kinds = ("bias", "bias_log2", "out_log2", "weight", "weight_log2")
    expected = {f"{layer}.{kind}" for layer in ("conv1", "conv2", "conv3") for kind in kinds}
    expected |= {f"dense.{kind}" for kind in kinds if kind != "out_log2"}
    assert set(arrays) == expected
    assert {value.dtype for value in arrays.values()} == {np.dtype(np.float32)}


def test_weights_of_a_diverged_training_are_one_line() -> None:
    arrays = to_arrays(shaken(Mnist2kb().build(), 1, SHAPE))
    arrays["conv1.weight"][0, 0, 0, 0] = np.inf
    with pytest.raises(ThimbleError, match=r"conv1\.weight is not finite"):
        from_arrays(Mnist2kb(), arrays)


@pytest.mark.parametrize("value", [None, np.float32(np.nan), np.zeros(3, np.float32)])
def test_a_missing_or_senseless_threshold_is_one_line(value: np.ndarray | None) -> None:
    arrays = to_arrays(shaken(Mnist2kb().build(), 1, SHAPE))
    del arrays["conv2.out_log2"]
    if value is not None:
        arrays["conv2.out_log2"] = np.asarray(value)
    with pytest.raises(ThimbleError, match=r"lack the threshold conv2\.out_log2"):
        from_arrays(Mnist2kb(), arrays)
