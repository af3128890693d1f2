"""The square-wave spectrogram of Gural & Murmann 2019, appendix D, in integers.

For each frequency f_m two running sums of a chunk of samples, each times a square wave, a quarter
of a period apart (eqs. 25 and 26): so only additions and subtractions. The power of frame j comes
from the last H chunks, weighted by a window (eq. 27), and the network gets its logarithm
(footnote 8).

In integers: a sample is v = clip(x >> sample_shift) of 8 bits, so that a chunk's sum has 16. The
phase of sample k is p = k·step mod 2^16; the square wave of eq. 26 is + where p < 2^15, that of
eq. 25 where p - 2^14 is. With I = (Σ w_i A_I) >> 5, Q alike and P = I² + Q² the feature is
clip(⌊16 log2 P⌋ - floor), the logarithm linear between powers of two; P = 0 gives 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.frontends.frontend import I16, I64, RATE_HZ, U8, Frontend

BLOCK = 32
"""Samples that are added to a bin's sums at once: the device does one bin with each new sample."""
TURN = 1 << 16
STEPS_PER_OCTAVE = 16
WINDOW_ONE = 16
"""Value that 1 of the window becomes."""
WINDOW_SHIFT = 5
MOST_BYTES = (1 << 16) - 1
MOST_CHUNK = 255
"""Samples of 8 bits whose sum has 16."""


@dataclass(frozen=True)
class SquareWave(Frontend):
    """``bins`` frequencies from ``low_hz`` to ``high_hz``, evenly spaced in octaves, for ``frames``
    chunks of ``chunk`` samples; ``history`` (H) chunks make a frame.

    ``floor``: what is taken off the logarithm, in sixteenths of an octave of power.

    Attributes:
        low_hz, high_hz: the lowest and the highest frequency; the others are evenly spaced in
            octaves.
    """

    bins: int = 24
    frames: int = 96
    chunk: int = 160
    history: int = 5
    low_hz: float = 120.0
    high_hz: float = 4_000.0
    sample_shift: int = 7
    floor: int = 176

    template: ClassVar[str] = "sound/square_wave.c.j2"
    early: ClassVar[int] = BLOCK
    """Meanwhile the last block is added up."""
    silence: ClassVar[str] = "nn_ear.begun = 1;"

    def __post_init__(self) -> None:
        if not 1 <= self.bins <= BLOCK:
            raise ThimbleError(f"frontend.bins={self.bins}: 1 to {BLOCK} are possible")
        if self.chunk % BLOCK or not BLOCK <= self.chunk <= MOST_CHUNK:
            raise ThimbleError(
                f"frontend.chunk={self.chunk} samples: multiples of {BLOCK} up to {MOST_CHUNK} are "
                "possible"
            )
        if not 0 < self.low_hz <= self.high_hz < RATE_HZ / 2:
            raise ThimbleError(
                f"frontend.low_hz={self.low_hz:g}, high_hz={self.high_hz:g}: above 0, in this "
                f"order, and below half of the {RATE_HZ:,} samples a second"
            )
        if not 1 <= self.history <= 8 or self.frames < 1:
            raise ThimbleError(
                f"frontend.history={self.history}, frames={self.frames}: 1 to 8 chunks, and one "
                "frame at least"
            )
        if 2 * self.samples > MOST_BYTES:
            raise ThimbleError(
                f"frontend.frames={self.frames} of {self.chunk} samples: the device counts "
                f"{MOST_BYTES // 2:,} samples of a sound, 2 s: use fewer frames"
            )
        if not 0 <= self.sample_shift <= 8 or not 0 <= self.floor <= 511:
            raise ThimbleError(
                f"frontend.sample_shift={self.sample_shift}, floor={self.floor}: 0 to 8 bits and 0 "
                "to 511 are possible"
            )

    @property
    def hop(self) -> int:
        return self.chunk

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames, self.bins, 1

    @property
    def steps(self) -> list[int]:
        """Return the step of the phase a sample, for each bin: 2^16 is a period."""
        wanted = np.geomspace(self.low_hz, self.high_hz, self.bins)
        return [int(each) for each in np.rint(wanted / RATE_HZ * TURN)]

    @property
    def window(self) -> list[int]:
        """Hamming's, one weight a chunk, the newest first."""
        shape = np.hamming(self.history) if self.history > 1 else np.ones(1)
        return [int(each) for each in np.rint(shape * WINDOW_ONE)]

    def sums(self, samples: I16) -> tuple[I64, I64]:
        """A_I and A_Q of every chunk (eqs. 25, 26): (n, samples) -> (n, frames, bins).

        By products of floats, which are exact for integers of 24 bits.
        """
        frames = self.frames_of(samples)
        heard = samples[:, : frames * self.chunk] >> self.sample_shift
        chunks = np.clip(heard, -128, 127).reshape(-1, frames, self.chunk)
        number = np.arange(frames * self.chunk, dtype=np.uint32).astype(np.uint16)  # modulo TURN
        phase = number[:, None] * np.array(self.steps, np.uint16)
        found = []
        for quarter in (TURN // 4, 0):
            low = phase - np.uint16(quarter) < TURN // 2
            wave = np.where(low, np.float32(1), np.float32(-1))
            wave = wave.reshape(frames, self.chunk, self.bins)
            product = chunks.transpose(1, 0, 2).astype(np.float32) @ wave
            found.append(product.transpose(1, 0, 2).astype(np.int64))
        return found[0], found[1]

    def power(self, samples: I16) -> I64:
        """P of eq. 27, (n, frames, bins)."""
        total = []
        for sums in self.sums(samples):
            windowed = np.zeros_like(sums)
            for ago, weight in enumerate(self.window):
                windowed[:, ago:] += weight * sums[:, : sums.shape[1] - ago]
            total.append((windowed >> WINDOW_SHIFT) ** 2)
        return total[0] + total[1]

    def features(self, samples: I16) -> U8:
        levels = np.clip(log2_steps(self.power(samples)) - self.floor, 0, 255)
        return levels.astype(np.uint8)[..., None]

    @property
    def values(self) -> Mapping[str, Any]:
        return {
            "bins": self.bins,
            "block": BLOCK,
            "blocks": self.chunk // BLOCK,
            "history": self.history,
            "shift": self.sample_shift,
            "floor": self.floor,
            "steps": self.steps,
            "window": self.window,
            "window_shift": WINDOW_SHIFT,
            "state_bytes": self.state_bytes,
        }

    @property
    def state_bytes(self) -> int:
        sums = 2 * 2 * self.history * self.bins
        return sums + 2 * self.bins + 2 * BLOCK + 8


def log2_steps(values: I64) -> I64:
    """⌊16 log2⌋ of integers below 2^31, linear between powers of two; of 0 it is 0."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    between = np.floor((2 * mantissa - 1) * STEPS_PER_OCTAVE)
    steps = (exponent - 1) * STEPS_PER_OCTAVE + between.astype(np.int64)
    return np.where(values > 0, steps, 0).astype(np.int64)
