"""Float training of any network, for those that are quantized afterwards: SGD with momentum."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.models.network import Model, state_arrays
from pipeline.training.augment import Distorting
from pipeline.training.checkpoint import fingerprint
from pipeline.training.environment import Run, repeatable
from pipeline.training.examples import Examples
from pipeline.training.loop import Phase
from pipeline.training.random_weights import enliven
from pipeline.training.recipe import Recipe, Trained, evaluator
from pipeline.training.session import session

FIRST_IMAGES = 256
"""Images that the initial weights are scaled on: inputs are 0…255, not normalized."""

FEWEST = 16
"""Input channels with which oneDNN's gradients are right whatever the core (below)."""


@dataclass(frozen=True)
class SgdPhase(Phase):
    """Nesterov's momentum; ``decay`` of the weights of layers, not of biases and normalizations."""

    momentum: float
    decay: float

    @property
    def mend(self) -> str:
        return "lower train.rate" if self.name == "float" else super().mend

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        weights = [p for p in parameters if p.ndim > 1]
        others = [p for p in parameters if p.ndim <= 1]
        groups = [
            {"params": weights, "weight_decay": self.decay},
            {"params": others, "weight_decay": 0.0},
        ]
        return torch.optim.SGD(groups, lr=self.learning_rate, momentum=self.momentum, nesterov=True)


@dataclass(frozen=True)
class FloatOnly(Distorting, Recipe):
    """Float training by stochastic gradient descent with Nesterov's momentum.

    Attributes:
        epochs: passes over the training images; the one best on the validation images counts.
        rate: the learning rate's greatest value; it rises to it and falls to 0.
        batch: images a step.
        momentum, decay: of the optimizer; decay of layers' weights alone.
        images: training images used; 0 is all.
    """

    epochs: int
    rate: float = 0.1
    batch: int = 128
    momentum: float = 0.9
    decay: float = 5e-4
    images: int = 0

    def fit(self, model: Model, data: Arrays, run: Run) -> Trained:
        train = Examples.of(data, "train", self.images or None)
        validation = Examples.of(data, "validation")
        key = fingerprint(self, model, run.seed, run.threads, *data.values())
        phase = SgdPhase("float", 0, self.epochs, self.rate, self.batch, self.momentum, self.decay)
        with repeatable(run):
            network = model.build()
            if not model.trained:
                enliven(network, train.pixels[:FIRST_IMAGES])
            network.to(memory_format=fast_layout(network))  # type: ignore[call-overload]
            with session(
                nn.Identity(), train, validation, self.distortion, run,
                key=key, batch=self.batch, epochs=self.epochs,
            ) as phases:  # fmt: skip
                phases.train(phase, network)
            network.eval()
        return Trained(state_arrays(network), phases.rows, evaluator(network, run))


def fast_layout(network: nn.Module) -> torch.memory_format:
    """Channels last, which is faster on a core, unless the network has strided 1x1 convolutions of
    few channels: for the gradients of their weights oneDNN 3.12 writes beyond its buffer then, and
    gives wrong numbers, hangs or crashes (uxlfoundation/oneDNN issue 6035)."""
    convolutions = [each for each in network.modules() if isinstance(each, nn.Conv2d)]
    if any(
        each.kernel_size == (1, 1) and each.stride != (1, 1) and each.in_channels < FEWEST
        for each in convolutions
    ):
        return torch.contiguous_format
    return torch.channels_last
