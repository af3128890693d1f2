"""Small random distortions of whole image sets, made anew for each epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample, interpolate

PART = 5_000
"""Images distorted at once, so that the grids stay in the cache."""
KNOTS = 5
"""Knots, in each direction, of the coarse grid that elastic displacements are drawn on."""


@dataclass(frozen=True, kw_only=True)
class Distortion:
    """Bounds of uniformly drawn distortions.

    Attributes:
        rotation_degrees, shift_pixels: at most this much either way.
        scale, shear: at most this fraction either way.
        elastic_pixels: standard deviation of the displacement of 5x5 knots, interpolated
            bicubically in between (a cheap form of Simard et al. 2003, "Best practices for
            convolutional neural networks").
        flip: mirror half of the images left to right.

    Pixels are interpolated bicubically: bilinearly they come out softer than those of the images
    that a network sees later, and it recognises these less well (docs/decisions/0023).
    """

    rotation_degrees: float = 0.0
    scale: float = 0.0
    shear: float = 0.0
    shift_pixels: float = 0.0
    elastic_pixels: float = 0.0
    flip: bool = False

    def apply(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """(n, c, h, w) -> the same shape; pixels from outside are 0. Random numbers are the
        generator's, wherever the images are."""
        if self == Distortion():
            return images
        found = torch.empty(images.shape, dtype=images.dtype, device=images.device)
        for given, made in zip(torch.split(images, PART), torch.split(found, PART), strict=True):
            made.copy_(self._part(given, generator))
        return found

    def _part(self, images: Tensor, generator: torch.Generator) -> Tensor:
        count, _, height, width = images.shape

        def uniform(bound: float) -> Tensor:
            drawn = torch.rand(count, generator=generator) * 2 - 1
            return drawn.to(images.device) * bound

        angle = uniform(math.radians(self.rotation_degrees))
        scale_x, scale_y, shear = (
            1 + uniform(self.scale),
            1 + uniform(self.scale),
            uniform(self.shear),
        )
        if self.flip:
            drawn = torch.rand(count, generator=generator) - 0.5
            scale_x = scale_x * torch.sign(drawn).to(images.device)
        to_x, to_y = uniform(self.shift_pixels * 2 / width), uniform(self.shift_pixels * 2 / height)
        cos, sin = torch.cos(angle), torch.sin(angle)
        rows = (cos * scale_x, shear - sin * scale_y, to_x), (sin * scale_x, cos * scale_y, to_y)
        matrix = torch.stack([torch.stack(row, 1) for row in rows], 1)  # (n, 2, 3)
        grid = affine_grid(matrix, list(images.shape), align_corners=False)
        if self.elastic_pixels:
            knots = torch.randn(count, 2, KNOTS, KNOTS, generator=generator)
            knots *= torch.tensor([2 / width, 2 / height])[:, None, None] * self.elastic_pixels
            basis = _basis(height, width).to(images.device)
            field = knots.to(images.device).reshape(count, 2, KNOTS * KNOTS) @ basis
            grid = grid + field.reshape(count, 2, height, width).permute(0, 2, 3, 1)
        moved = grid_sample(images, grid, "bicubic", align_corners=False)
        return moved.clamp(min(0.0, float(images.min())), max(0.0, float(images.max())))


@cache
def _basis(height: int, width: int) -> Tensor:
    """(knots, pixels): bicubic interpolation is linear in the knots, so a product with this."""
    each = torch.eye(KNOTS * KNOTS).reshape(-1, 1, KNOTS, KNOTS)
    fields = interpolate(each, (height, width), mode="bicubic", align_corners=True)
    return fields.reshape(KNOTS * KNOTS, height * width)


class Distorting(Distortion):
    """A recipe that distorts training images at random: the fields of a ``Distortion`` are its
    own."""

    @property
    def distortion(self) -> Distortion:
        return Distortion(**{field.name: getattr(self, field.name) for field in fields(Distortion)})
