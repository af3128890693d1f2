"""Seeded random weights: for networks without a data set here, where memory is the question."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from pipeline.artifacts import Arrays
from pipeline.models.network import Model
from pipeline.quantize.parameters import to_arrays
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training.environment import Run, repeatable
from pipeline.training.recipe import Recipe, Trained


@dataclass(frozen=True)
class RandomWeights(Recipe):
    """The model's initial weights; thresholds are chosen on ``images`` of uniform noise."""

    images: int = 64
    needs_data: bool = False

    def train(self, model: Model, data: Arrays, run: Run) -> Trained:
        """``data`` is not looked at."""
        with repeatable(run):
            quantized = QuantizedNetwork(model.build())
            height, width, channels = model.input_shape
            shape = (self.images, channels, height, width)
            pixels = torch.randint(0, 256, shape, generator=run.generator()).float()
            quantized.calibrate(quantized.pool(pixels))
            quantized.freeze()
        return Trained(to_arrays(quantized), [])
