"""The default recipe on the real sets: minutes long, so only where they were fetched before."""

from pathlib import Path

import pytest
import torch
import yaml

from pipeline import config
from pipeline.datasets.dataset import FetchedDataset
from pipeline.datasets.fashion_mnist import FashionMnist
from pipeline.datasets.mnist import Mnist
from pipeline.datasets.store import home, is_good
from pipeline.models.mnist_2kb import Mnist2kb
from pipeline.quantize.int4 import Int4
from pipeline.quantize.parameters import from_arrays
from pipeline.training.environment import Run
from pipeline.training.recipe import ACCURACY_FLOAT
from tests.comparing import equal


def stored(kind: type[FetchedDataset]) -> bool:
    return all(is_good(home() / kind.title / file.name, file.sha256) for file in kind.files)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed", "least"), [(Mnist, 1, 0.985), (Mnist, 2, 0.985), (FashionMnist, 1, 0.85)]
)
def test_the_default_recipe(kind: type[FetchedDataset], seed: int, least: float) -> None:
    """Integer test accuracy, and all 10,000 integer outputs equal to the simulated ones."""
    if not stored(kind):
        pytest.skip(f"{kind.title} was not fetched on this machine yet")
    data, model = kind().arrays(), Mnist2kb()
    recipe = config.instantiate(yaml.safe_load(Path("params.yaml").read_text())["train"])
    weights = recipe.train(model, data, Run(seed)).weights
    graph = Int4().graph("mnist_2kb", model, weights)
    logits = graph.outputs(data["test_images"])
    reached = float((logits.argmax(1) == data["test_labels"]).mean())
    assert reached >= least
    assert abs(reached - float(weights[ACCURACY_FLOAT])) < 0.02
    network = from_arrays(model, weights)
    with torch.no_grad():
        pixels = torch.from_numpy(data["test_images"]).permute(0, 3, 1, 2).float()
        simulated = network(network.pool(pixels)).double().numpy()
    equal(logits * graph.tensors["logits"].scale[0], simulated)
