"""The end of the recipe: integers one step up or down, where that lowers the training loss.

A weight whose gradient pulls it to a place between two integers swings from one to the other, and
where the last steps leave it is chance (Nagel et al. 2022, "Overcoming oscillations in
quantization-aware training"). Here the neighbour that the gradient points to is tried itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from pipeline.models.network import Model
from pipeline.quantize.simulated import BIAS, QuantizedNetwork
from pipeline.training import paper_stack
from pipeline.training.paper_engine import Engine
from pipeline.training.paper_kernel import F32, FROZEN, Batches
from pipeline.training.paper_rows import parameters, to_network

PART = 1_000
"""Images whose gradients are computed at once."""
TOGETHER = 4
"""Changes that are tried side by side; the best of them is made."""


@dataclass(frozen=True)
class Grid:
    """Grid of each element of a row: the step between its values, the least and the greatest."""

    step: F32
    low: F32
    high: F32

    @classmethod
    def of(cls, network: QuantizedNetwork) -> Grid:
        """Make a frozen network's. What is no weight or bias stays as it is: a step of 0."""
        bounds: list[tuple[int, float, int, int]] = []
        for layer, steps in network.steps.values():
            for values, form, step in (
                (layer.layer.weight, layer.weights, steps.weight),
                (layer.bias, BIAS, steps.bias),
            ):
                scale = 2.0 ** float(step.detach())
                bounds.append((values.numel(), scale, form.dtype.minimum, form.dtype.maximum))
        rest = sum(each.numel() for each in parameters(network)) - sum(n for n, *_ in bounds)
        bounds.append((rest, 0.0, 0, 0))
        count, scales, low, high = (np.array(each) for each in zip(*bounds, strict=True))
        every = (scales, scales * low, scales * high)
        return cls(*(np.repeat(each, count).astype(np.float32) for each in every))

    def snap(self, row: F32) -> F32:
        """Return the values that ``row`` stands for: a network of the same outputs."""
        scale = np.where(self.step > 0, self.step, 1)
        snapped = np.clip(np.rint(row / scale) * scale, self.low, self.high)
        result: F32 = np.where(self.step > 0, snapped, row).astype(np.float32)
        return result

    def downhill(self, row: F32, gradient: F32) -> list[tuple[int, np.float32]]:
        """Elements and their changes by one step down ``gradient``, inside the bounds; what the
        gradient foretells the most of comes first."""
        change = -np.sign(gradient) * self.step
        inside = (row + change >= self.low) & (row + change <= self.high) & (change != 0)
        order = np.argsort(-np.abs(gradient * self.step), kind="stable")
        return [(int(at), change[at]) for at in order[inside[order]]]


def losses(logits: torch.Tensor, batches: Batches) -> torch.Tensor:
    """(n, classes) -> (n,): what the recipe minimises, of each image."""
    labels, shares = (torch.from_numpy(each)[None] for each in (batches.labels, batches.shares))
    stacked = paper_stack.losses(logits[None], labels, shares, batches.hard, batches.temperature)
    return stacked.squeeze(0)


def slope(network: QuantizedNetwork, batches: Batches) -> F32:
    """Return the gradient of the mean loss, a row; 0 where nothing is trained."""
    every, count = parameters(network), len(batches.labels)
    for first in range(0, count, PART):
        part = batches.of(slice(first, first + PART))
        images = torch.from_numpy(part.images).permute(0, 3, 1, 2) / 16
        torch.autograd.backward(losses(network(images), part).sum() / count)
    found = [torch.zeros_like(each) if each.grad is None else each.grad for each in every]
    return torch.cat([each.reshape(-1) for each in found]).numpy()


def sweep(
    row: F32, model: Model, engine: Engine, batches: Batches, others: Batches
) -> tuple[F32, float, int]:
    """Try each integer of ``row`` once, in the direction that the gradient on ``batches`` points
    to: a change stays if it lowers the mean loss of these images by more than its standard error,
    and that of the ``others``, too.

    Returns:
        The row, the mean loss of the others, and how many changes were made.
    """
    network = to_network(model, row)
    network.freeze()
    grid = Grid.of(network)

    def of(rows: list[F32], images: Batches) -> list[torch.Tensor]:
        found = engine.logits(rows, FROZEN, images.images)
        return [losses(torch.from_numpy(each), images) for each in found]

    row, changes = grid.snap(row), 0
    (now,), (check,) = of([row], batches), of([row], others)
    downhill = grid.downhill(row, slope(network, batches))
    for first in range(0, len(downhill), TOGETHER):
        rows = []
        for at, change in downhill[first : first + TOGETHER]:
            rows.append(row.copy())
            rows[-1][at] += change
        tried = of(rows, batches)
        gains = [_gain(now - each) for each in tried]
        best = int(np.argmax(gains))
        if gains[best] > 0:
            (checked,) = of([rows[best]], others)
            if checked.mean() < check.mean():
                row, now, check, changes = rows[best], tried[best], checked, changes + 1
    return row, float(check.mean()), changes


def _gain(less: torch.Tensor) -> float:
    """Return the mean, less its standard error."""
    return float(less.mean() - less.std() / len(less) ** 0.5)
