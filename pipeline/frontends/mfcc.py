"""Mel-frequency cepstral coefficients as MLPerf Tiny's keyword network takes them, in integers.

The definition is that of its reference (mlcommons/tiny, ``keyword_spotting/get_dataset.py``):
windows of 40 ms (Hann), 20 ms apart, a Fourier transform of 1,024 points, magnitudes, 40 mel bands
from 20 to 4,000 Hz (``tf.signal.linear_to_mel_weight_matrix``), ln(x + 1e-6), the first 10
coefficients of their cosine transform (``mfccs_from_log_mel_spectrograms``); 49 frames of a second.
What differs: the reference divides each sound by its own largest sample, which a stream doesn't
know; here it is divided by ``level``. That moves the first coefficient alone, by
8.94 ln(level / largest).

In integers, for windows x of 16 bits: x·hann / 2^11 (4 bits of fraction); 512 complex points of
even and odd samples, radix 2, twiddles of 2^30, each product rounded; twice the spectrum,
magnitudes by the integer square root; bands with weights of 2^15; logarithms of 2^16, linear
between 257 places of an octave; the cosines have 2^16, and the result is rounded once for the
network's scale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError
from pipeline.frontends.frontend import I16, I64, RATE_HZ, U8, Frontend, root

WINDOW, STRIDE, POINTS = 640, 320, 512
BANDS, LOW_HZ, HIGH_HZ = 40, 20.0, 4_000.0
EPSILON = 1e-6
LAST_BIN = int(HIGH_HZ * 2 * POINTS / RATE_HZ)
WINDOWED_SHIFT = 11
ONE = 1 << 15
"""Scale of the window and of the weights of bands."""
TURN_BITS = 30
"""Bits of twiddles: with 15 a loud tone would leave more in quiet bands than its rounding does."""
FRACTION = 1 << 20
"""Scale of what the logarithm is taken of: 4 bits of the windowed samples, 1 of twice the
spectrum, 15 of the weights."""
LOG_BITS = 16
LN2 = round(np.log(2) * (1 << 16))
PLACES = 256
"""Entries of an octave in the table of logarithms."""
SCALE_BITS = 14


@dataclass(frozen=True)
class Mfcc(Frontend):
    """``coefficients`` of ``frames`` windows, as int8 of ``scale`` and ``zero_point``, plus 128.

    Attributes:
        coefficients, frames: columns and rows of the network's input; a row is 20 ms of sound.
        level: the sample that counts as 1.
        scale, zero_point: those of the network's input.
    """

    coefficients: int = 10
    frames: int = 49
    level: int = 8_192
    scale: float = 0.5847029
    zero_point: int = 83

    template: ClassVar[str] = "sound/mfcc.c.j2"
    early: ClassVar[int] = WINDOW - STRIDE
    silence: ClassVar[str] = f"nn_ear.filled = {WINDOW - STRIDE};"

    def __post_init__(self) -> None:
        if not 1 <= self.coefficients <= BANDS or self.frames < 1:
            raise ThimbleError(
                f"frontend.coefficients={self.coefficients}, frames={self.frames}: 1 to {BANDS} of "
                "one frame at least"
            )
        if not 1 <= self.level <= 1 << 15:
            raise ThimbleError(f"frontend.level={self.level}: 1 to {1 << 15} are possible")
        if not 0.01 <= self.scale <= 100 or not -128 <= self.zero_point <= 127:
            raise ThimbleError(
                f"frontend.scale={self.scale:g}, zero_point={self.zero_point}: 0.01 to 100 and "
                "-128 to 127, what the network says of its input"
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames, self.coefficients, 1

    @property
    def hop(self) -> int:
        return STRIDE

    @cached_property
    def hann(self) -> I64:
        """``tf.signal.hann_window``: the periodic one."""
        turns = np.arange(WINDOW) / WINDOW
        return _rounded((0.5 - 0.5 * np.cos(2 * np.pi * turns)) * ONE)

    @cached_property
    def twiddles(self) -> tuple[I64, I64]:
        """cos and -sin of 2 pi k / 1024 for k < 512, of 2^30."""
        turns = np.arange(POINTS) / (2 * POINTS)
        one = 1 << TURN_BITS
        return _rounded(np.cos(2 * np.pi * turns) * one), _rounded(-np.sin(2 * np.pi * turns) * one)

    @cached_property
    def bands(self) -> tuple[I64, I64]:
        """Return, for each bin of the transform up to 4 kHz, between which two edges it lies, and
        how near the upper one, of 2^15. It has that weight in the band whose centre that is, and
        the rest in the one before."""
        edges = np.linspace(_mel(LOW_HZ), _mel(HIGH_HZ), BANDS + 2)
        place = (_mel(np.arange(LAST_BIN + 1) * RATE_HZ / (2 * POINTS)) - edges[0]) / (
            edges[1] - edges[0]
        )
        below = np.clip(np.floor(place), 0, BANDS).astype(np.int64)
        weight = _rounded(np.clip(place - below, 0, 1) * ONE)
        outside = (place < 0) | (np.arange(LAST_BIN + 1) == 0)
        return np.where(outside, -1, below), weight

    @cached_property
    def logarithms(self) -> I64:
        """log2(1 + n / 256), of 2^16."""
        return _rounded(np.log2(1 + np.arange(PLACES + 1) / PLACES) * (1 << LOG_BITS))

    @cached_property
    def cosines(self) -> I64:
        """(coefficients, bands), of 2^16."""
        angle = np.pi / BANDS * (np.arange(BANDS) + 0.5) * np.arange(self.coefficients)[:, None]
        return _rounded(np.cos(angle) * 2 / np.sqrt(2 * BANDS) * (1 << 16))

    @property
    def epsilon(self) -> int:
        return round(EPSILON * self.level * FRACTION)

    @property
    def ln_level(self) -> int:
        """Return the natural logarithm of what counts as 1 (``level`` at ``FRACTION``), of 2^16."""
        return round(float(np.log(self.level * FRACTION)) * (1 << LOG_BITS))

    @property
    def per_step(self) -> int:
        """1 / scale, of 2^14."""
        return round((1 << SCALE_BITS) / self.scale)

    def spectrum(self, windows: I64) -> tuple[I64, I64]:
        """Twice the real and the imaginary part of bins 0…256: (n, 640) -> (n, 257)."""
        held = np.zeros((len(windows), 2 * POINTS), np.int64)
        held[:, :WINDOW] = (windows * self.hann + (1 << (WINDOWED_SHIFT - 1))) >> WINDOWED_SHIFT
        order = np.arange(POINTS).reshape((2,) * (POINTS.bit_length() - 1)).T.reshape(-1)
        re, im = held[:, 0::2][:, order], held[:, 1::2][:, order]
        cos, sin = self.twiddles
        half = 1
        while half < POINTS:
            step = POINTS // half  # of the twiddles, which are for 1,024 points
            wave = slice(0, half * step, step)
            pairs_re, pairs_im = (each.reshape(len(held), -1, 2, half) for each in (re, im))
            b_re, b_im = pairs_re[:, :, 1], pairs_im[:, :, 1]
            t_re, t_im = _product(b_re, b_im, cos[wave], sin[wave])
            a_re, a_im = pairs_re[:, :, 0], pairs_im[:, :, 0]
            re = np.stack([a_re + t_re, a_re - t_re], axis=2).reshape(len(held), -1)
            im = np.stack([a_im + t_im, a_im - t_im], axis=2).reshape(len(held), -1)
            half *= 2
        k = np.arange(LAST_BIN + 1)
        mirror = -k % POINTS
        even_re, even_im = re[:, k] + re[:, mirror], im[:, k] - im[:, mirror]
        odd_re, odd_im = im[:, k] + im[:, mirror], re[:, mirror] - re[:, k]
        t_re, t_im = _product(odd_re, odd_im, cos[k], sin[k])
        return even_re + t_re, even_im + t_im

    def log_mel(self, windows: I64) -> I64:
        """ln(mel + 1e-6) of 2^16, of sounds divided by ``level``: (n, 640) -> (n, 40)."""
        re, im = self.spectrum(windows)
        magnitude = root(re * re + im * im)
        below, weight = self.bands
        mel = np.zeros((len(windows), BANDS), np.int64)
        for bin_, (edge, upper) in enumerate(zip(below, weight, strict=True)):
            if 0 <= edge < BANDS:
                mel[:, edge] += magnitude[:, bin_] * upper
            if edge > 0:
                mel[:, edge - 1] += magnitude[:, bin_] * (ONE - upper)
        return np.asarray(((self._log2(mel + self.epsilon) * LN2) >> 16) - self.ln_level)

    def _log2(self, values: I64) -> I64:
        """Return the binary logarithm of positive integers, of 2^16, rounded down."""
        exponent = np.zeros(values.shape, np.int64)
        for bits in (32, 16, 8, 4, 2, 1):
            exponent += np.where((values >> exponent) >> bits > 0, bits, 0)
        up, down = np.maximum(24 - exponent, 0), np.maximum(exponent - 24, 0)
        mantissa = ((values << up) >> down) & ((1 << 24) - 1)
        place, rest = mantissa >> 16, mantissa & 0xFFFF
        low, high = self.logarithms[place], self.logarithms[place + 1]
        found: I64 = (exponent << LOG_BITS) + low + (((high - low) * rest) >> 16)
        return found

    def coefficients_of(self, windows: I64) -> I64:
        """MFCC of 2^16: (n, 640) -> (n, coefficients)."""
        sums = self.log_mel(windows) @ self.cosines.T
        return np.asarray((sums + (1 << 15)) >> 16, np.int64)

    def features(self, samples: I16) -> U8:
        starts = np.arange(self.frames_of(samples)) * STRIDE
        windows = samples.astype(np.int64)[:, starts[:, None] + np.arange(WINDOW)]
        found = self.coefficients_of(windows.reshape(-1, WINDOW))
        shift = LOG_BITS + SCALE_BITS
        steps = (found * self.per_step + (1 << (shift - 1))) >> shift
        levels = np.clip(steps + self.zero_point, -128, 127) + 128
        return np.asarray(levels.reshape(-1, len(starts), self.coefficients, 1), np.uint8)

    @property
    def values(self) -> Mapping[str, Any]:
        below, weight = self.bands
        cos, sin = self.twiddles
        return {
            "coefficients": self.coefficients,
            "window": WINDOW,
            "stride": STRIDE,
            "points": POINTS,
            "bands": BANDS,
            "bins": LAST_BIN,
            "hann": self.hann.tolist()[: WINDOW // 2 + 1],
            "cos": cos.tolist(),
            "sin": sin.tolist(),
            "below": below.tolist(),
            "weight": weight.tolist(),
            "logarithms": self.logarithms.tolist(),
            "cosines": self.cosines.reshape(-1).tolist(),
            "epsilon": self.epsilon,
            "ln_level": self.ln_level,
            "ln2": LN2,
            "per_step": self.per_step,
            "zero": self.zero_point + 128,
            "state_bytes": self.state_bytes,
        }

    @property
    def state_bytes(self) -> int:
        """Samples of a window, the points of its transform, 40 logarithms, three counters."""
        return 2 * WINDOW + 8 * POINTS + 4 * BANDS + 8


def _rounded(values: npt.NDArray[np.float64]) -> I64:
    return np.rint(values).astype(np.int64)


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log(1 + np.asarray(hertz) / 700.0)


def _product(re: I64, im: I64, cos: I64, sin: I64) -> tuple[I64, I64]:
    """Multiply complex numbers, the second of 2^30, and round."""
    half = 1 << (TURN_BITS - 1)
    real, imaginary = re * cos - im * sin + half, re * sin + im * cos + half
    return real >> TURN_BITS, imaginary >> TURN_BITS
