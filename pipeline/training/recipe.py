"""Float training, then quantization-aware with trained thresholds, then with frozen ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.datasets.dataset import seen
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
"""Name in ``weights.npz`` of the accuracy on the test set before quantization. Nothing is chosen by
it."""

Evaluate = Callable[[Examples], float]


@dataclass(frozen=True)
class Trained:
    """The content of ``weights.npz``, a row for each epoch, and from the test set the accuracy
    before quantization."""

    weights: Arrays
    rows: Sequence[Row]
    evaluate: Evaluate | None = None


class Recipe(ABC):
    """Recipe for ``weights.npz``; ``needs_data`` says whether ``dataset.npz`` is read."""

    needs_data: ClassVar[bool] = True

    @abstractmethod
    def fit(self, model: Model, data: Arrays, run: Run) -> Trained:
        """Equal arguments give equal weights on one machine; ``data`` has no test set."""

    def train(self, model: Model, data: Arrays, run: Run) -> Trained:
        """Fit, and only then look at the test set, for the one figure that is of it."""
        if self.needs_data:
            model.check(data)
        made = self.fit(model, seen(data), run)
        if made.evaluate is None:
            return made
        reached = np.array(made.evaluate(Examples.of(data, "test")))
        return replace(made, weights=made.weights | {ACCURACY_FLOAT: reached})


def evaluator(network: nn.Module, run: Run) -> Evaluate:
    def evaluate(test: Examples) -> float:
        with repeatable(run):
            return accuracy(network, test.pixels, test.labels)

    return evaluate


@dataclass(frozen=True)
class ThreePhases(Distorting, Recipe):
    """The published order of phases (Gural & Murmann 2019), in minutes instead of days.

    Phases with 0 epochs are left out; without any quantization-aware ones the thresholds are
    those of least squared error on some training images.

    Attributes:
        float_epochs: in floating point.
        quantized_epochs: with 4-bit weights and activations, thresholds trained, too.
        frozen_epochs: the same with thresholds frozen.
        float_rate, quantized_rate, frozen_rate: learning rate of Adam in that phase.
        batch: images a step.
        images: training images used; 0 is all.
    """

    float_epochs: int
    quantized_epochs: int
    frozen_epochs: int
    float_rate: float = 0.01
    quantized_rate: float = 0.005
    frozen_rate: float = 0.002
    batch: int = 256
    images: int = 0

    def fit(self, model: Model, data: Arrays, run: Run) -> Trained:
        total = self.float_epochs + self.quantized_epochs + self.frozen_epochs
        train = Examples.of(data, "train", self.images or None)
        validation = Examples.of(data, "validation")
        key = fingerprint(self, model, run.seed, run.threads, *data.values())
        with repeatable(run):
            network = model.chain()
            quantized = QuantizedNetwork(network)
            pool = quantized.pool
            with session(
                pool, train, validation, self.distortion, run,
                key=key, batch=self.batch, epochs=total,
            ) as phases:  # fmt: skip
                phases.phase("float", network[1:], self.float_epochs, self.float_rate)
                evaluate = evaluator(deepcopy(network), run)
                quantized.calibrate(pool(train.pixels[:CALIBRATION_IMAGES]))
                phases.phase("quantized", quantized, self.quantized_epochs, self.quantized_rate)
                quantized.freeze()
                phases.phase("frozen", quantized, self.frozen_epochs, self.frozen_rate)
        return Trained(to_arrays(quantized), phases.rows, evaluate)
