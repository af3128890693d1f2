"""Order of images in memory while a network is trained."""

from __future__ import annotations

import torch
from torch import nn

FEWEST = 16
"""Input channels with which oneDNN's gradients are right whatever the core (below)."""


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
