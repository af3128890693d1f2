from pathlib import Path

import numpy as np
import yaml

from pipeline import config
from pipeline.models.mnist_2kb import Mnist2kb
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
    assert [graph.tensors[name].shape[-1] for name in ("conv1", "conv2", "conv3")] == [2, 3, 4]
    pixels = images(20, SHAPE, 1)
    logits = graph.outputs(pixels.permute(0, 2, 3, 1).numpy().astype(np.int64))
    expected = small(small.pool(pixels)).detach().double().numpy()
    assert (logits * graph.tensors["logits"].scale[0] == expected).all()
