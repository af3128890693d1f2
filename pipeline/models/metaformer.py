"""Transformers and their kin: blocks that mix tokens, then channels, each after LayerNorm.

Yu et al. 2022, "MetaFormer is actually what you need for vision", figure 1. Attention mixes tokens
as in a vision transformer (Dosovitskiy et al. 2021), or a convolution of each channel does. Pixels
are divided by 255 first: weights that learn from 0…255 make patches of one step of 8 bits or less,
which a normalization of each token then makes as large as all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipeline.errors import ThimbleError
from pipeline.models.network import Model


class Attention(nn.Module):
    """Self-attention of ``heads`` heads: (n, tokens, channels) -> the same."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.asked = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, channels = x.shape
        asked = self.asked(x).reshape(n, tokens, 3, self.heads, channels // self.heads)
        query, key, value = asked.permute(2, 0, 3, 1, 4).unbind(0)  # (n, heads, tokens, each)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        found: Tensor = self.out(mixed.transpose(1, 2).reshape(n, tokens, channels))
        return found


class Along(nn.Module):
    """A convolution of each channel along the tokens: (n, tokens, channels) -> the same."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, kernel, padding=kernel // 2, groups=channels)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return found


class Block(nn.Module):
    """Mix tokens, then channels, each added to what went in."""

    def __init__(self, channels: int, mixer: nn.Module, expand: int) -> None:
        super().__init__()
        self.norm1, self.mixer = nn.LayerNorm(channels), mixer
        self.norm2, self.expand = nn.LayerNorm(channels), nn.Linear(channels, expand * channels)
        self.act, self.project = nn.GELU(), nn.Linear(expand * channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer(self.norm1(x))
        x = x + self.project(self.act(self.expand(self.norm2(x))))
        return x


class Network(nn.Module):
    """Tokens of patches, blocks, their mean and a dense layer: (n, c, h, w) -> (n, classes)."""

    def __init__(self, shape: MetaFormer) -> None:
        super().__init__()
        height, width, depth = shape.input_shape
        tokens = (height // shape.patch[0]) * (width // shape.patch[1])
        self.patches = nn.Conv2d(depth, shape.channels, shape.patch, shape.patch)
        self.places = nn.Parameter(0.02 * torch.randn(tokens, shape.channels))
        mixers = [
            Attention(shape.channels, shape.heads)
            if shape.heads
            else Along(shape.channels, shape.kernel)
            for _ in range(shape.blocks)
        ]
        self.blocks = nn.Sequential(*(Block(shape.channels, m, shape.expand) for m in mixers))
        self.norm, self.dense = (
            nn.LayerNorm(shape.channels),
            nn.Linear(shape.channels, shape.classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x / 255).flatten(2).transpose(1, 2) + self.places
        found: Tensor = self.dense(self.norm(self.blocks(tokens)).mean(1))
        return found


@dataclass(frozen=True)
class MetaFormer(Model):
    """``blocks`` of ``channels`` for each ``patch`` (h, w) of the image.

    Attributes:
        heads: of attention; 0 mixes by convolutions of ``kernel`` tokens.
        expand: factor of channels between a block's two dense layers.
    """

    patch: tuple[int, int] = (4, 4)
    channels: int = 32
    blocks: int = 3
    heads: int = 2
    kernel: int = 9
    expand: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(size % by for size, by in zip(self.input_shape, self.patch, strict=False)):
            raise ThimbleError(f"model.patch={list(self.patch)} has to divide model.input_shape")
        if self.heads and self.channels % self.heads:
            raise ThimbleError(f"model.heads={self.heads} has to divide model.channels")

    def build(self) -> nn.Module:
        return Network(self)
