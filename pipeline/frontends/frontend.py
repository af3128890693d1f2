"""Front end: an operator before the network, streaming, with a state of fixed size.

It takes samples as they come and gives the network's input row by row. Python computes it for whole
data sets, generated C for one sound on the device; both from the same tables, with equal bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError

I16 = npt.NDArray[np.int16]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

PARTS = ("train", "validation", "test")
RATE_HZ = 16_000
NOISES = 32
BATCH = 50
"""Sounds at once."""


@dataclass(frozen=True)
class Frontend(ABC):
    """A front end as the config gives it."""

    template: ClassVar[str]
    """Template of its C, in ``firmware/kernels``."""

    early: ClassVar[int]
    """Samples that a sound has besides those of its frames."""
    silence: ClassVar[str]
    """C: as if as many samples of 0 had come."""

    @property
    @abstractmethod
    def hop(self) -> int:
        """Return the number of samples from one frame to the next."""

    @property
    def samples(self) -> int:
        """Return the number of samples of one sound, 16 bits at 16 kHz each."""
        return self.shape[0] * self.hop + self.early

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """(frames, features, 1) of what the network takes."""

    @abstractmethod
    def features(self, samples: I16) -> U8:
        """(n, samples) -> (n, as many frames as there are, features, 1)."""

    def frames_of(self, samples: I16) -> int:
        return int(samples.shape[1] - self.early) // self.hop

    @property
    @abstractmethod
    def values(self) -> Mapping[str, Any]:
        """Return what the template needs: numbers and tables."""

    @property
    @abstractmethod
    def state_bytes(self) -> int:
        """On the device, statically: all that it remembers from sample to sample."""

    def check(self, shape: tuple[int, ...]) -> None:
        """Raises ThimbleError when a network that takes ``shape`` does not go with it."""
        mine = tuple(extent for extent in self.shape if extent > 1)
        if tuple(extent for extent in shape if extent > 1) != mine:
            raise ThimbleError(
                f"the front end gives {self.shape[0]} frames of {self.shape[1]} features, the "
                f"network takes {'x'.join(map(str, shape))}: set model.input_shape="
                f"[{','.join(map(str, self.shape))}], or the front end's frames and features"
            )

    def applied(self, data: Arrays) -> Arrays:
        """``dataset.npz`` of a data set's sounds; those of the test set stay, for the device. Where
        there is no data set, noise is tried."""
        if not any(len(data[f"{part}_images"]) for part in PARTS):
            silent = np.zeros((0, self.samples), np.int16)
            data = {**data, **dict.fromkeys((f"{part}_images" for part in PARTS), silent)}
            data["test_images"] = self.noise()
        for part in PARTS:
            sounds = data[f"{part}_images"]
            if sounds.ndim != 2 or sounds.dtype != np.int16:
                raise ThimbleError(
                    "a front end takes sounds, and the data set has images: leave frontend out, or "
                    "choose data=spoken_keywords or speech_commands"
                )
            if sounds.shape[1] < self.samples:
                raise ThimbleError(
                    f"the data set's sounds have {sounds.shape[1]:,} samples, the front end takes "
                    f"{self.samples:,}: choose fewer frames"
                )
        heard = {part: data[f"{part}_images"][:, : self.samples] for part in PARTS}
        made = {f"{part}_images": self.spectrograms(sounds) for part, sounds in heard.items()}
        return {**data, **made, "test_sounds": np.ascontiguousarray(heard["test"])}

    def noise(self) -> I16:
        """Make sounds of all loudnesses, the same each time."""
        loud = 2.0 ** np.linspace(1, 14, NOISES)[:, None]
        random = np.random.default_rng(0).normal(0, loud, (NOISES, self.samples))
        return np.clip(np.rint(random), -32_768, 32_767).astype(np.int16)

    def spectrograms(self, sounds: I16) -> U8:
        """Compute ``features`` of as many sounds as there are."""
        parts = [self.features(sounds[at : at + BATCH]) for at in range(0, len(sounds), BATCH)]
        return np.concatenate(parts) if parts else np.zeros((0, *self.shape), np.uint8)


def root(squares: I64) -> I64:
    """Compute the integer square root of values below 2^62."""
    root = np.floor(np.sqrt(squares.astype(np.float64))).astype(np.int64)
    root -= root * root > squares
    root += (root + 1) * (root + 1) <= squares
    return root
