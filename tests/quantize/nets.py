"""Networks with random parameters and thresholds, as of training, and a trained one."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.models.network import Model, PixelPool
from pipeline.quantize.simulated import QuantizedNetwork
from tests.importers.torch_modules import Of


def residual() -> nn.Module:
    """Convolutions with batch norms, a shortcut as it is and one of 1x1, pools, a classifier."""

    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = m.pool(torch.relu(m.stem(x / 255)))
        x = torch.relu(x + m.first(x))
        return m.head(torch.relu(m.second(x) + m.shortcut(x)))

    return Of(
        forward, stem=nn.Sequential(nn.Conv2d(1, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)),
        pool=nn.MaxPool2d(2),
        first=nn.Sequential(
            nn.Conv2d(8, 8, 3, 1, 1, groups=8, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8)),
        second=nn.Sequential(
            nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)),
        shortcut=nn.Conv2d(8, 16, 1, 2),
        head=nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)),
    )  # fmt: skip


@dataclass(frozen=True)
class Own(Model):
    """Model of the same random weights each time."""

    network: Callable[[], nn.Module] = residual

    def build(self) -> nn.Module:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return self.network().eval()


def trained(model: Own, data: Arrays, epochs: int, batch: int = 50) -> nn.Module:
    """Seconds of training."""
    net, labels = model.build().train(), torch.from_numpy(data["train_labels"]).long()
    images = pixels(data, "train")
    steps = epochs * -(-len(labels) // batch)
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    rising = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-2, total_steps=steps)
    generator = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for chosen in torch.randperm(len(labels), generator=generator).split(batch):
            loss = nn.functional.cross_entropy(net(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rising.step()
    return net.eval()


def stored(images: np.ndarray) -> np.ndarray:
    """Pixels as int8 networks take them."""
    return images.astype(np.int64) - 128


def pixels(data: Arrays, part: str = "test") -> torch.Tensor:
    return torch.from_numpy(data[f"{part}_images"]).permute(0, 3, 1, 2).float()


def chain(*layers: nn.Module, pool: int = 2) -> nn.Sequential:
    """Layers named as a person would: conv1, relu1, maxpool1, flatten1, dense1 …"""
    words = {nn.Conv2d: "conv", nn.Linear: "dense", nn.MaxPool2d: "maxpool"}
    network, counts = nn.Sequential(), {}
    network.add_module("avg", PixelPool(pool))
    for layer in layers:
        word = words.get(type(layer), type(layer).__name__.lower())
        counts[word] = counts.get(word, 0) + 1
        network.add_module(f"{word}{counts[word]}", layer)
    return network


def shaken(network: nn.Sequential, seed: int, shape: tuple[int, int, int]) -> QuantizedNetwork:
    """Random weights and biases of very different sizes, thresholds near the calibrated ones."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            size = 2.0 ** float(torch.randint(-4, 2, (), generator=generator))
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * size)
        quantized = QuantizedNetwork(network)
        quantized.calibrate(quantized.pool(images(200, shape, seed)))
        for layer in quantized.quantized.values():
            for threshold in (layer.weight_log2, layer.bias_log2, layer.out_log2):
                if threshold is not None:
                    threshold += torch.randn((), generator=generator)
    return quantized


def images(count: int, shape: tuple[int, int, int], seed: int) -> torch.Tensor:
    """(n, c, h, w) of blotches and noise, 0…255."""
    generator = torch.Generator().manual_seed(seed)
    height, width, channels = shape
    coarse = torch.rand(count, channels, height // 4, width // 4, generator=generator)
    blotches = nn.functional.interpolate(coarse, (height, width))
    noise = torch.rand(count, channels, height, width, generator=generator)
    return (blotches * noise * 300).clamp(0, 255).floor()
