"""Float training, then quantization-aware with trained thresholds, then with frozen ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.artifacts import Arrays
from pipeline.models.network import Model
from pipeline.quantize.parameters import to_arrays
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training.augment import Distorting
from pipeline.training.checkpoint import fingerprint
from pipeline.training.environment import Run, repeatable
from pipeline.training.examples import Examples, accuracy
from pipeline.training.loop import Row
from pipeline.training.session import session

CALIBRATION_IMAGES = 2_000
ACCURACY_FLOAT = "accuracy_float"
"""In ``weights.npz``: on the test set, of the network before it was quantized. Nothing is chosen
by it."""


@dataclass(frozen=True)
class Trained:
    """The content of ``weights.npz`` and a row for each epoch."""

    weights: Arrays
    rows: Sequence[Row]


class Recipe(ABC):
    """How ``weights.npz`` comes about; ``needs_data`` says whether ``dataset.npz`` is read."""

    needs_data: bool = True

    @abstractmethod
    def train(self, model: Model, data: Arrays, run: Run) -> Trained:
        """Equal arguments give equal weights on one machine."""


@dataclass(frozen=True)
class ThreePhases(Distorting, Recipe):
    """The published order of phases (Gural & Murmann 2019), in minutes instead of days.

    Phases with 0 epochs are left out; without any quantization-aware ones the thresholds are
    those of least squared error on some training images. ``images``: how many are trained on;
    0 is all.
    """

    float_epochs: int
    quantized_epochs: int
    frozen_epochs: int
    float_rate: float = 0.01
    quantized_rate: float = 0.005
    frozen_rate: float = 0.002
    batch: int = 256
    images: int = 0

    def train(self, model: Model, data: Arrays, run: Run) -> Trained:
        model.check(data)
        total = self.float_epochs + self.quantized_epochs + self.frozen_epochs
        train = Examples.of(data, "train", self.images or None)
        validation, test = (Examples.of(data, part) for part in ("validation", "test"))
        key = fingerprint(self, model, run.seed, run.threads, *data.values())
        with repeatable(run):
            network = model.chain()
            quantized = QuantizedNetwork(network)
            pool = quantized.pool
            with session(
                pool, train, validation, self.distortion, run, key, self.batch, total
            ) as phases:
                phases.phase("float", network[1:], self.float_epochs, self.float_rate)
                reached = accuracy(network, test.pixels, test.labels)
                quantized.calibrate(pool(train.pixels[:CALIBRATION_IMAGES]))
                phases.phase("quantized", quantized, self.quantized_epochs, self.quantized_rate)
                quantized.freeze()
                phases.phase("frozen", quantized, self.frozen_epochs, self.frozen_rate)
        return Trained(to_arrays(quantized) | {ACCURACY_FLOAT: np.array(reached)}, phases.rows)
