"""A small network with all couplings but one, on made-up images, and how it is pruned."""

from functools import cache
from typing import Any

from pipeline.artifacts import Arrays
from pipeline.budget import UNREAD
from pipeline.datasets.synthetic import Synthetic
from pipeline.models.blocks import Blocks
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests import boards

DATA = Synthetic(shape=(12, 12, 1), classes=4, train=256, validation=64, test=64).arrays()
MODEL = Blocks(
    (12, 12, 1),
    4,
    (
        {"kind": "conv", "channels": 8},
        {"kind": "mbconv", "channels": 8, "expand": 3, "squeeze": 0.5},
        {"kind": "mbconv", "channels": 12, "expand": 3, "stride": 2},
    ),
)
PLANNER: dict[str, Any] = {
    "strategy": {"_target_": "pipeline.strategies.ordinary.Ordinary"},
    "hardware": {key: value for key, value in boards.node("host").items() if key not in UNREAD},
    "passes": (),
}


@cache
def weights() -> Arrays:
    return RandomWeights().train(MODEL, DATA, Run(1)).weights
