from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from pipeline import config
from pipeline.errors import ThimbleError
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.models.network import state_arrays
from pipeline.quantize.int4 import Int4
from pipeline.quantize.parameters import to_arrays
from tests.quantize.nets import images, shaken

SHAPE = (28, 28, 1)


def test_the_yaml_names_it() -> None:
    node = yaml.safe_load(Path("conf/quantize/int4.yaml").read_text())
    assert config.instantiate(node) == Int4()


def test_parameters_become_a_graph_of_their_size() -> None:
    small = shaken(Mnist2kb(channels=(2, 3, 4)).build(), 0, SHAPE)
    graph = Int4().graph("mine", Mnist2kb(), to_arrays(small))
    assert graph.name == "mine"
    assert graph.tensors[graph.input].units == (1, 0)  # pixels of 0…255, as the model takes them
    assert [graph.tensors[name].shape[-1] for name in ("conv1", "conv2", "conv3")] == [2, 3, 4]
    pixels = images(20, SHAPE, 1)
    logits = graph.outputs(pixels.permute(0, 2, 3, 1).numpy().astype(np.int64))
    expected = small(small.pool(pixels)).detach().double().numpy()
    assert (logits * graph.tensors["logits"].scale[0] == expected).all()


@pytest.mark.parametrize("images", [0, 50])
def test_weights_without_thresholds_get_the_best_ones(images: int) -> None:
    """Of any training, on images or on pictures of nothing; the same ones again."""
    torch.manual_seed(4)
    model = Mnist2kb()
    weights = state_arrays(model.build())
    pixels = np.random.default_rng(0).integers(0, 256, (images, 28, 28, 1), np.uint8)
    first, again = (Int4().graph("a", model, weights, {"train_images": pixels}) for _ in range(2))
    assert first.hash == again.hash
    torch.random.manual_seed(9)
    assert Int4().graph("a", model, weights, {"train_images": pixels}).hash == first.hash
    for name, values in first.constants.items():
        if name.endswith("weight"):
            assert values.min() >= -8 and values.max() <= 7 and len(np.unique(values)) > 8
    with pytest.raises(ThimbleError, match="belong to another model"):
        Int4().graph("a", model, {"conv1.weight": weights["conv1.weight"]})
