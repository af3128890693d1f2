"""The float network's labels: of which images and outputs, and one image at a time if need be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from pipeline.artifacts import read_npz, write_npz
from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.models.lenet5 import LeNet5
from pipeline.models.network import state_arrays
from pipeline.models.resnet8 import ResNet8
from pipeline.quantize import labels as module
from pipeline.quantize.int4 import Int4
from pipeline.quantize.int8 import Int8
from pipeline.quantize.labels import labels
from pipeline.training.random_weights import RANDOM, enliven
from stages import quantize
from tests.importers.onnx_models import imported, parsed, small_network

MODEL = ResNet8(input_shape=(16, 16, 3))
IMAGES = np.random.default_rng(0).integers(0, 256, (30, 16, 16, 3)).astype(np.uint8)


PIXELS = torch.from_numpy(IMAGES).permute(0, 3, 1, 2).float()


def lively() -> nn.Module:
    """Not one label for all images."""
    torch.manual_seed(0)
    network = MODEL.build()
    enliven(network, PIXELS)
    return network


def one_by_one(network: nn.Module) -> list[int]:
    with torch.no_grad():
        return [int(network(image[None]).argmax()) for image in PIXELS]


def test_of_a_model_with_its_weights() -> None:
    network = lively()
    expected = one_by_one(network)
    assert len(set(expected)) > 1
    found = Int8().float_labels(MODEL, state_arrays(network), IMAGES, 1)
    assert found.tolist() == expected


def test_of_a_float_file() -> None:
    network = imported("net", parsed(small_network()), (-60.0, 60.0))
    images = IMAGES[:, :8, 8:]
    found = Int8().float_labels(network, {}, images, 1)
    expected = network.outputs(torch.from_numpy(images).float()).argmax(1)
    assert found.tolist() == expected.tolist() and len(set(found.tolist())) > 1


def test_the_4_bit_format_has_no_float_network_before_it() -> None:
    assert len(Int4().float_labels(MODEL, {}, IMAGES, 1)) == 0


def test_of_a_large_network_the_first_images(monkeypatch: pytest.MonkeyPatch) -> None:
    network = lively()
    monkeypatch.setattr(module, "LARGEST_MACS", 900)
    found = Int8().float_labels(MODEL, state_arrays(network), IMAGES, 100)
    assert found.tolist() == one_by_one(network)[:9]
    assert len(Int8().float_labels(MODEL, state_arrays(network), IMAGES, 10**6)) == 8


def test_a_network_of_one_image_at_a_time() -> None:
    torch.manual_seed(0)
    dense = nn.Linear(768, 10)
    found = labels(lambda x: dense(x.reshape(1, -1)), IMAGES, 1, 1)
    whole = labels(lambda x: dense(x.flatten(1)), IMAGES, 1, 1)
    assert found.tolist() == whole.tolist() and len(found) == 30
    mixed = labels(lambda x: x.mean((0, 1, 2))[None], IMAGES, 1, 1)  # one answer for the batch
    assert len(mixed) == 30


def test_images_are_no_labels_and_threads_are_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # here threads are asked for indeed
    before = torch.get_num_threads()
    assert len(labels(lambda x: x, IMAGES, 1, before + 1)) == 0
    assert len(labels(lambda x: x.flatten(1), IMAGES[:0], 1, before + 1)) == 0
    assert torch.get_num_threads() == before
    with pytest.raises(RuntimeError, match="shape"):
        labels(lambda x: x.reshape(7, -1), IMAGES[:1], 1, before + 1)
    assert torch.get_num_threads() == before


def test_the_stage_asks_the_float_network_unless_its_weights_are_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, data = LeNet5(), Synthetic(train=40, validation=5, test=12).arrays()
    config = {
        "model": {"_target_": "pipeline.models.lenet5.LeNet5", "name": "lenet5"},
        "quantize": {"_target_": "pipeline.quantize.int8.Int8", "name": "int8", "images": 8},
        "passes": [],
        "sliding": {"windows": 1, "rows": 1},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config))
    write_npz(tmp_path / "data" / "dataset.npz", data)
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    weights = state_arrays(network.build())
    for more, count in (({}, 12), (RANDOM, 0)):
        write_npz(tmp_path / "pruned.npz", {**weights, **more})
        quantize.main()
        found = read_npz(tmp_path / "float_labels.npz").get("labels", ())
        assert len(found) == count
    write_npz(tmp_path / "data" / "dataset.npz", {**data, "test_labels": np.full(12, 10)})
    with pytest.raises(ThimbleError, match="label 10, lenet5 gives 10 outputs"):
        quantize.main()
