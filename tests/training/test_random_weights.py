from pathlib import Path

import numpy as np
import yaml

from pipeline import config
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.quantize.int4 import Int4
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights


def test_no_data_is_needed() -> None:
    recipe = config.instantiate(yaml.safe_load(Path("conf/train/random.yaml").read_text()))
    assert recipe == RandomWeights() and not recipe.needs_data
    trained = recipe.train(Mnist2kb(), {}, Run(1))
    assert list(trained.rows) == []


def test_the_seed_decides() -> None:
    first, again, other = (RandomWeights().train(Mnist2kb(), {}, Run(s)).weights for s in (1, 1, 2))
    assert all((first[key] == again[key]).all() for key in first)
    assert not (first["conv1.weight"] == other["conv1.weight"]).all()


def test_the_graph_computes_something() -> None:
    """Thresholds fit: activations are neither all zero nor all clipped."""
    model = Mnist2kb(input_shape=(32, 24, 3), channels=(6, 7))
    weights = RandomWeights().train(model, {}, Run(3)).weights
    graph = Int4().graph("random", model, weights)
    frames = np.random.default_rng(0).integers(0, 256, (20, 32, 24, 3))
    values = graph.run(frames)
    for name in ("conv1", "conv2"):
        assert len(np.unique(values[name])) > 8
        assert (values[name] == 15).mean() < 0.2
    assert len(np.unique(values["logits"])) > 50
