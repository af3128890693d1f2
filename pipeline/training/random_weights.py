"""Seeded random weights: for networks without a data set here, where memory is the question.

Each layer is scaled on pictures of nothing so that, whatever the depth, its outputs have a given
mean and variance over the pictures (Krähenbühl et al. 2016, "Data-dependent initializations of
convolutional neural networks", section 3.1): no activation dies, none saturates, and quantization
meets ranges like those of a trained network.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.artifacts import Arrays
from pipeline.datasets.noise import pictures
from pipeline.models.network import Model, is_chain, state_arrays
from pipeline.quantize.parameters import to_arrays
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training.environment import Run, repeatable
from pipeline.training.recipe import Recipe, Trained

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
SCALED = (nn.Conv1d, nn.Conv2d, nn.Linear)
LINEAR = 1.0
"""Mean of each channel before its activation, in standard deviations: most values pass a ReLU as
they are. At 0, differences between inputs, and rounding errors with them, grow from layer to layer
(Yang et al. 2019, "A mean field theory of batch normalization"): at 8 bits MobileNetV1's outputs
would be noise."""

RANDOM: Arrays = {"random_weights": np.array(True)}
"""Mark in ``weights.npz``: the network has learnt nothing, and its accuracy says nothing."""

MOST_VALUES = 1 << 20
"""Values of all pictures together, so that large images don't fill the memory."""


@dataclass(frozen=True)
class RandomWeights(Recipe):
    """Random weights, for memory and speed: scaled layer by layer so that activations don't vanish.

    Attributes:
        images: random pictures that the weights are scaled on; of a chain in 4 bits the weights
            stay, and its thresholds are chosen on as much uniform noise.
    """

    images: int = 64
    needs_data: ClassVar[bool] = False

    def fit(self, model: Model, data: Arrays, run: Run) -> Trained:
        """``data`` is not looked at. Weights that the user gave stay as they are."""
        with repeatable(run):
            network = model.build()
            if model.trained:
                return Trained(state_arrays(network), [])
            if is_chain(network):
                return Trained(to_arrays(self._quantized(network, model, run)) | RANDOM, [])
            count = max(2, min(self.images, MOST_VALUES // prod(model.input_shape)))
            images = torch.from_numpy(pictures(count, model.input_shape, run.seed))
            enliven(network, images.permute(0, 3, 1, 2).float().contiguous(), LINEAR)
        return Trained(state_arrays(network) | RANDOM, [])

    def _quantized(self, network: nn.Sequential, model: Model, run: Run) -> QuantizedNetwork:
        quantized = QuantizedNetwork(network)
        height, width, channels = model.input_shape
        shape = (self.images, channels, height, width)
        pixels = torch.randint(0, 256, shape, generator=run.generator()).float()
        quantized.calibrate(quantized.pool(pixels))
        quantized.freeze()
        return quantized


@torch.no_grad()
def enliven(network: nn.Module, images: Tensor, mean: float = 0.0) -> None:
    """Scale the layers of ``network``, first to last, on ``images`` (n, c, h, w), n >= 2.

    Convolutions and dense layers get unit variance over all outputs, and each channel ``mean``
    where they have a bias. Batch normalizations get the statistics of what they see, and ``mean``.
    """
    hooks = [
        layer.register_forward_hook(partial(_scale, mean))
        for layer in network.modules()
        if isinstance(layer, SCALED)
    ]
    norms = [layer for layer in network.modules() if isinstance(layer, NORMS)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        if norm.affine:
            norm.bias.fill_(mean)
        norm.momentum = 1.0  # the running statistics become those of this batch
    network.train()
    network(images)
    network.eval()
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    for hook in hooks:
        hook.remove()


def _scale(wanted: float, layer: nn.Module, _: object, output: Tensor) -> Tensor:
    """A forward hook: what it returns is what the next layer sees."""
    assert isinstance(layer, SCALED)
    own = output.ndim - 1 if isinstance(layer, nn.Linear) else 1
    others = [axis for axis in range(output.ndim) if axis != own]
    mean = output.mean() if layer.bias is None else output.mean(others, keepdim=True)
    scale = (output - mean).square().mean().sqrt().clamp(min=1e-6)
    layer.weight /= scale
    if layer.bias is None:
        return output / scale
    layer.bias.copy_((layer.bias - mean.flatten()) / scale + wanted)
    return (output - mean) / scale + wanted
