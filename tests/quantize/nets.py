"""Networks with random parameters and thresholds, as training might leave them."""

from __future__ import annotations

import torch
from torch import nn

from pipeline.models.network import PixelPool
from pipeline.quantize.simulated import QuantizedNetwork


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
