"""A generated stand-in for spoken words: tones, learnt in seconds, for tests and for trying out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.artifacts import Arrays
from pipeline.datasets.dataset import Dataset, Split, parts_of
from pipeline.datasets.sounds import CLASSES, RATE_HZ, SAMPLES

LOW_HZ, HIGH_HZ = 200, 3_500


@dataclass(frozen=True)
class Tones(Dataset):
    """Each of the twelve classes a height, of any loudness, for half a second somewhere in the one
    that a sound has; with noise."""

    validation: int = 24
    train: int = 96
    test: int = 24
    seed: int = 0

    def arrays(self) -> Arrays:
        random = np.random.default_rng(self.seed)
        counts = (self.train, self.validation, self.test)
        return parts_of(*(self._part(count, random) for count in counts))

    def _part(self, count: int, random: np.random.Generator) -> Split:
        labels = (np.arange(count) % len(CLASSES)).astype(np.uint8)
        hertz = np.geomspace(LOW_HZ, HIGH_HZ, len(CLASSES))[labels]
        turns = np.arange(SAMPLES) / RATE_HZ * hertz[:, None] + random.random((count, 1))
        start = random.integers(SAMPLES // 2, size=(count, 1))
        heard = (np.arange(SAMPLES) >= start) & (np.arange(SAMPLES) < start + SAMPLES // 2)
        loud = np.exp(random.uniform(np.log(2_000), np.log(16_000), (count, 1)))
        made = heard * loud * np.sin(2 * np.pi * turns) + random.normal(0, 200, (count, SAMPLES))
        return Split(np.rint(made).astype(np.int16), labels)
