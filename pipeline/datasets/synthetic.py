"""A generated stand-in: noisy glyphs, learnt in seconds, for tests and for trying things out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipeline.datasets.dataset import U8, Dataset, Split
from pipeline.errors import ThimbleError

GLYPH_CELLS = 4
"""A glyph is a random 4x4 pattern, as large as the image allows."""


@dataclass(frozen=True)
class Synthetic(Dataset):
    """Made-up glyphs for tests, each shifted by a pixel or two, dimmed and noisy."""

    validation: int = 100
    train: int = 400
    test: int = 100
    shape: tuple[int, int, int] = (28, 28, 1)
    classes: int = 10
    seed: int = 0

    def read(self) -> tuple[Split, Split]:
        height, width, channels = self.shape
        cell = min(height, width) // (GLYPH_CELLS + 1)
        if cell < 1 or not 1 <= self.classes <= 256:
            raise ThimbleError(
                f"data: {self.classes} classes of {height}x{width} images; up to 256 classes and "
                f"at least {GLYPH_CELLS + 1}x{GLYPH_CELLS + 1} pixels are possible"
            )
        random = np.random.default_rng(self.seed)
        patterns = random.integers(0, 2, (self.classes, GLYPH_CELLS, GLYPH_CELLS, channels))
        glyphs = patterns.repeat(cell, axis=1).repeat(cell, axis=2)
        parts = (self.train + self.validation, self.test)
        train, test = (self._split(count, glyphs.astype(np.float64), random) for count in parts)
        return train, test

    def _split(
        self, count: int, glyphs: npt.NDArray[np.float64], random: np.random.Generator
    ) -> Split:
        """``glyphs``: (classes, side, side, channels) of 0 and 1."""
        height, width, channels = self.shape
        side = glyphs.shape[1]
        labels = (np.arange(count) % self.classes).astype(np.uint8)
        images = np.empty((count, height, width, channels), np.uint8)
        for index, label in enumerate(labels):
            canvas = random.normal(20, 15, self.shape)
            top = (height - side) // 2 + random.integers(-1, 2)
            left = (width - side) // 2 + random.integers(-1, 2)
            top, left = max(0, min(top, height - side)), max(0, min(left, width - side))
            brightness = random.uniform(140, 230)
            canvas[top : top + side, left : left + side] += glyphs[label] * brightness
            images[index] = np.clip(canvas, 0, 255)
        order = random.permutation(count)
        shuffled: U8 = images[order]
        return Split(shuffled, labels[order])
