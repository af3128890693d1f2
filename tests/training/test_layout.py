"""Gradients of strided 1x1 convolutions of few channels, on every core: oneDNN's are wrong in one
layout (pipeline/training/layout.py). On a core with AVX-512, ONEDNN_MAX_CPU_ISA=AVX2 shows it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pipeline.importers import float_nodes as nodes
from pipeline.training.layout import fast_layout


@pytest.mark.parametrize("channels", [4, 7, 16])
def test_gradients_of_a_network(channels: int) -> None:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Conv2d(3, channels, 3), nn.Conv2d(channels, 8, 1, stride=2))
    double = nn.Sequential(nn.Conv2d(3, channels, 3), nn.Conv2d(channels, 8, 1, stride=2))
    double.load_state_dict(network.state_dict())
    layout = fast_layout(network)
    assert (layout == torch.channels_last) == (channels == 16)
    images = torch.randn(32, 3, 18, 18)
    network.to(memory_format=layout)  # type: ignore[call-overload]
    torch.autograd.backward(network(images).square().sum())
    torch.autograd.backward(double.double()(images.double()).square().sum())
    for found, right in zip(network.parameters(), double.parameters(), strict=True):
        assert found.grad is not None and right.grad is not None
        assert torch.allclose(found.grad.double(), right.grad, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("padding", [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 0, 1)])
def test_gradients_of_a_graph(padding: nodes.Padding) -> None:
    chance = np.random.default_rng(1)
    weights = chance.normal(size=(8, 1, 1, 5))
    node = nodes.Convolution(
        name="c", inputs=("x",), output="y", weights=weights, bias=np.zeros(8), stride=(2, 3),
        padding=padding,
    )  # fmt: skip
    images = torch.from_numpy(chance.normal(size=(32, 16, 17, 5))).float()
    learnt = torch.from_numpy(weights).float().requires_grad_()
    made = node.applied(images, learnt, torch.zeros(8))
    torch.autograd.backward(made.square().sum())
    exact = torch.from_numpy(weights).requires_grad_()
    around = nodes.padded(images.double().permute(0, 3, 1, 2), padding, 0.0)
    right = F.conv2d(around, exact.permute(0, 3, 1, 2), None, (2, 3))
    torch.autograd.backward(right.square().sum())
    assert torch.allclose(made.double(), right.permute(0, 2, 3, 1), atol=1e-4)
    assert learnt.grad is not None and exact.grad is not None
    assert torch.allclose(learnt.grad.double(), exact.grad, rtol=1e-3, atol=1e-2)
