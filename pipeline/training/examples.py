"""A data set as tensors, in the form the loop wants."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipeline.artifacts import Arrays
from pipeline.training.augment import Distortion
from pipeline.training.environment import Run


@dataclass(frozen=True)
class Examples:
    """Pixels (n, c, h, w) in 0…255 as float32, and labels (n,)."""

    pixels: Tensor
    labels: Tensor

    @classmethod
    def of(cls, data: Arrays, part: str, count: int | None = None) -> Examples:
        """``part`` is train, validation or test; ``count`` takes only its first images."""
        pixels = torch.from_numpy(data[f"{part}_images"][:count]).permute(0, 3, 1, 2)
        return cls(
            pixels.to(torch.float32, memory_format=torch.contiguous_format),
            torch.from_numpy(data[f"{part}_labels"][:count]).to(torch.int64),
        )

    def to(self, device: str) -> Examples:
        return Examples(self.pixels.to(device), self.labels.to(device))

    def pooled(self, pool: nn.Module) -> Tensor:
        """Return the 4-bit image the firmware keeps."""
        result: Tensor = pool(self.pixels)
        return result

    def epoch(
        self, pool: nn.Module, distortion: Distortion, run: Run, index: int
    ) -> tuple[Tensor, Tensor]:
        """Distorted, pooled and shuffled images with their labels, the same for the same index."""
        generator = run.generator(index)
        images = pool(distortion.apply(self.pixels, generator))
        order = torch.randperm(len(images), generator=generator).to(images.device)
        return images[order], self.labels[order]


@torch.no_grad()
def accuracy(network: nn.Module, pooled: Tensor, labels: Tensor, batch: int = 250) -> float:
    """Return the share of images whose greatest output is the label's. Activations of a ``batch``
    are small enough for the allocator to keep their memory, which makes larger ones slower."""
    right = 0
    for start in range(0, len(labels), batch):
        part = slice(start, start + batch)
        right += int((network(pooled[part]).argmax(1) == labels[part]).sum())
    return right / len(labels)
