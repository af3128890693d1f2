"""The features of microWakeWord's networks, and of others made for TensorFlow's micro front end:
equal integers.

The definition is tensorflow/lite/experimental/microfrontend, with the settings of microWakeWord:
windows of 30 ms (Hann), 10 ms apart, a real transform of 512 points in 16 bits (as KISS FFT rounds:
each stage of radix 4 divides by 4), energies, 40 mel bands from 125 to 7,500 Hz, the square root, a
noise estimate that is subtracted, amplification by channel (PCAN: Wang et al., 2017, "Trainable
frontend"), ln. A feature of 26 becomes 255, as ESPHome computes it.
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

F32 = npt.NDArray[np.float32]

WINDOW, STRIDE, POINTS = 480, 160, 256
"""Samples, and complex points of even and odd samples."""
BANDS, LOW_HZ, HIGH_HZ = 40, 125, 7_500
WEIGHT_BITS = 12
ONE = 1 << WEIGHT_BITS
"""Scale of the window, and of the weights of bands."""
UPWARDS = (149, 221)
"""Bins whose weight in their band is one more than rounded: log1pf of C libraries isn't exact."""
SMOOTHING_BITS, NOISE_BITS = 10, 14
SMOOTHING = (0.025, 0.06)
"""Of even and of odd bands: how fast the estimate of noise follows."""
REMAINING = 0.05
"""Of a band, whatever its noise."""
STRENGTH, OFFSET, GAIN_BITS, SNR_BITS, OUTPUT_BITS = 0.95, 80.0, 21, 12, 6
CORRECTION_BITS = (2 * POINTS).bit_length() - 1 - WEIGHT_BITS // 2
SNR_SHIFT = GAIN_BITS - CORRECTION_BITS - SNR_BITS
SEGMENTS = 128
LN2 = 45_426
STEP, STEPS = 666, 256
"""So many sixty-fourths of a natural logarithm are so many steps of the network's input."""


@dataclass(frozen=True)
class Microfrontend(Frontend):
    """40 features of each of ``frames`` windows; the noise estimate begins at 0 in each sound."""

    frames: int = 98

    template: ClassVar[str] = "sound/microfrontend.c.j2"
    early: ClassVar[int] = WINDOW - STRIDE
    silence: ClassVar[str] = f"nn_ear.filled = {WINDOW - STRIDE};"

    def __post_init__(self) -> None:
        if self.frames < 1:
            raise ThimbleError(f"frontend.frames={self.frames}: one frame at least")

    @property
    def hop(self) -> int:
        return STRIDE

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.frames, BANDS, 1

    @cached_property
    def hann(self) -> I64:
        turn = np.float32(np.pi) * np.float32(2) / np.float32(WINDOW)
        turns = turn * (np.arange(WINDOW, dtype=np.float32) + np.float32(0.5))
        cosines = np.cos(turns.astype(np.float64)).astype(np.float32)
        return _scaled(np.float32(0.5) - np.float32(0.5) * cosines)

    @cached_property
    def twiddles(self) -> tuple[I64, I64]:
        """cos and -sin of 2 pi k / 512 for k < 384, of 2^15 - 1."""
        turns = -np.pi * np.arange(384) / POINTS
        cos, sin = (
            np.floor(0.5 + 32_767 * each(turns)).astype(np.int64) for each in (np.cos, np.sin)
        )
        return cos, sin

    @cached_property
    def bands(self) -> tuple[int, I64, I64]:
        """Find the first bin, and for each from there on below which of 41 centres it lies and its
        weight in that band, of 2^12; what is left of 1 counts in the next band."""
        low, high = _mel(np.array([LOW_HZ, HIGH_HZ], np.float32))
        spacing = (high - low) / np.float32(BANDS + 1)
        centres = low + spacing * np.arange(1, BANDS + 2, dtype=np.float32)
        each_hz = np.float32(0.5) * np.float32(RATE_HZ) / np.float32(POINTS)
        first = int(np.float32(1.5) + np.float32(LOW_HZ) / each_hz)
        places = _mel(np.arange(first, POINTS, dtype=np.float32) * each_hz)
        band = np.searchsorted(centres, places, side="left")
        places, band = places[band <= BANDS], band[band <= BANDS]
        below = np.concatenate([[low], centres])[band].astype(np.float32)
        weights = _scaled((centres[band] - places) / (centres[band] - below))
        weights[np.array(UPWARDS) - first] += 1
        return first, band, weights

    @cached_property
    def smoothing(self) -> I64:
        return np.array([int(np.float32(each) * (1 << NOISE_BITS)) for each in SMOOTHING])

    @property
    def remaining(self) -> int:
        return int(np.float32(REMAINING) * (1 << NOISE_BITS))

    @cached_property
    def gains(self) -> I64:
        """List the gains of 0 and 1, then for each power of two the gain there, and the two
        coefficients of a parabola up to the next one."""

        def at(x: int) -> int:
            place = np.float32(x) / np.float32(1 << (SMOOTHING_BITS - CORRECTION_BITS))
            power = np.float32(float(place + np.float32(OFFSET)) ** -float(np.float32(STRENGTH)))
            return min(int(power * np.float32(1 << GAIN_BITS) + np.float32(0.5)), 32_767)

        found = [at(0), at(1)]
        for bits in range(2, 33):
            low = 1 << (bits - 1)
            first, middle, last = at(low), at(low + low // 2), at(2 * low - (bits == 32))
            bend = 4 * (middle - first) - (last - first)
            found += [first, bend, last - first - bend]
        return np.array(found, np.int64)

    @cached_property
    def logarithms(self) -> I64:
        """log2(1 + n / 128) - n / 128, of 2^16."""
        parts = np.arange(SEGMENTS + 1) / SEGMENTS
        return np.rint((np.log2(1 + parts) - parts) * (1 << 16)).astype(np.int64)

    def energies(self, windows: I64) -> tuple[I64, I64]:
        """(n, 480) -> by how many bits each was scaled up (n,), and energies of bins (n, 257)."""
        heard = _word((windows * self.hann) >> WEIGHT_BITS)
        largest = np.maximum(_word(np.abs(heard)), 0).max(axis=1)
        shift = 15 - np.ceil(np.log2(largest + 1)).astype(np.int64)
        held = np.zeros((len(windows), 2 * POINTS), np.int64)
        held[:, :WINDOW] = _word(heard << np.maximum(shift, 0)[:, None])
        re, im = self._transform(held[:, 0::2], held[:, 1::2])
        k = np.arange(1, POINTS // 2 + 1)
        (a_re, a_im), (b_re, b_im) = (
            (_divided(re[:, at], 2), _divided(im[:, at], 2)) for at in (k, POINTS - k)
        )
        cos, sin = self.twiddles
        t_re, t_im = _product(
            _word(a_re - b_re), _word(a_im + b_im), cos[k + POINTS // 2], sin[k + POINTS // 2]
        )
        f_re, f_im = _word(a_re + b_re), _word(a_im - b_im)
        found = np.zeros((len(windows), POINTS + 1), np.int64)
        found[:, POINTS - k] = ((f_re - t_re) >> 1) ** 2 + ((t_im - f_im) >> 1) ** 2
        found[:, k] = ((f_re + t_re) >> 1) ** 2 + ((f_im + t_im) >> 1) ** 2
        return shift, found

    def _transform(self, re: I64, im: I64) -> tuple[I64, I64]:
        order = np.arange(POINTS).reshape((4,) * 4).transpose(3, 2, 1, 0).reshape(-1)
        re, im = re[:, order], im[:, order]
        cos, sin = self.twiddles
        size = 1
        while size < POINTS:
            part = [_divided(each.reshape(len(re), -1, 4, size), 4) for each in (re, im)]
            turns = 2 * np.arange(size) * (POINTS // (4 * size))
            (x0, y0), *others = ((part[0][:, :, n], part[1][:, :, n]) for n in range(4))
            (x1, y1), (x2, y2), (x3, y3) = (
                _product(x, y, cos[n * turns], sin[n * turns]) for n, (x, y) in enumerate(others, 1)
            )
            even, odd = (_word(x0 + x2), _word(y0 + y2)), (_word(x0 - x2), _word(y0 - y2))
            sums, apart = (_word(x1 + x3), _word(y1 + y3)), (_word(x1 - x3), _word(y1 - y3))
            made = (
                (even[0] + sums[0], odd[0] + apart[1], even[0] - sums[0], odd[0] - apart[1]),
                (even[1] + sums[1], odd[1] - apart[0], even[1] - sums[1], odd[1] + apart[0]),
            )
            re, im = (_word(np.stack(each, axis=2)).reshape(len(re), -1) for each in made)
            size *= 4
        return re, im

    def magnitudes(self, windows: I64) -> I64:
        """(n, 480) -> (n, 40): square roots of what the bands' bins have together."""
        shift, energies = self.energies(windows)
        first, bands, weights = self.bands
        sums = np.zeros((len(windows), BANDS + 2), np.int64)
        for at, (band, weight) in enumerate(zip(bands, weights, strict=True), first):
            sums[:, band] += energies[:, at] * weight
            sums[:, band + 1] += energies[:, at] * (ONE - weight)
        squares = sums[:, 1 : BANDS + 1]
        found = root(squares)
        found += (squares - found * found > found) & (found != 0xFFFF)
        return np.asarray(found >> shift[:, None])

    def features(self, samples: I16) -> U8:
        steps = (self.levels(samples) * STEPS + STEP // 2) // STEP
        return np.minimum(steps, 255).astype(np.uint8)[..., None]

    def levels(self, samples: I16) -> I64:
        """(n, samples) -> (n, frames, 40): what the micro front end itself gives."""
        starts = np.arange(self.frames_of(samples))[:, None] * STRIDE + np.arange(WINDOW)
        windows = samples.astype(np.int64)[:, starts]
        heard = self.magnitudes(windows.reshape(-1, WINDOW)).reshape(*windows.shape[:2], BANDS)
        noise, smoothing = (
            np.zeros((len(samples), BANDS), np.int64),
            self.smoothing[np.arange(BANDS) % 2],
        )
        found = np.empty_like(heard)
        for frame in range(len(starts)):
            signal = heard[:, frame]
            up = (signal << SMOOTHING_BITS) & 0xFFFFFFFF
            noise = (up * smoothing + noise * ((1 << NOISE_BITS) - smoothing)) >> NOISE_BITS
            left = (up - np.minimum(noise, up)) >> SMOOTHING_BITS
            left = np.maximum(left, (signal * self.remaining) >> NOISE_BITS)
            found[:, frame] = self._logarithm(_shrunk((left * self._gain(noise)) >> SNR_SHIFT))
        return found

    def _gain(self, noise: I64) -> I64:
        bits = np.maximum(_bits(noise), 2)
        at = 3 * bits - 4
        low, bend, curve = (self.gains[at + n] for n in range(3))
        part = (noise << np.maximum(11 - bits, 0) >> np.maximum(bits - 11, 0)) & 0x3FF
        found = low + ((((curve * part) >> 5) + (bend << 5)) * part + (1 << 14) >> 15)
        return np.where(noise <= 2, self.gains[np.minimum(noise, 2)], found)

    def _logarithm(self, values: I64) -> I64:
        """Take 64 times the natural one, of ``values`` times 8; 0 of 0."""
        values = values << CORRECTION_BITS
        whole = np.maximum(_bits(values) - 1, 0)
        part = (values << np.maximum(16 - whole, 0) >> np.maximum(whole - 16, 0)) & 0xFFFF
        low, high = self.logarithms[part >> 9], self.logarithms[(part >> 9) + 1]
        log2 = (whole << 16) + part + low + (((high - low) * (part & 511)) >> 16)
        natural = (LN2 * log2 + (1 << 15)) >> 16
        return np.where(values > 1, ((natural << 6) + (1 << 15)) >> 16, 0)

    @property
    def values(self) -> Mapping[str, Any]:
        cos, sin = self.twiddles
        first, bands, weights = self.bands
        return {
            "window": WINDOW,
            "stride": STRIDE,
            "points": POINTS,
            "bands": BANDS,
            "first": first,
            "hann": self.hann.tolist(),
            "cos": cos.tolist(),
            "sin": sin.tolist(),
            "ends": np.searchsorted(bands, np.arange(BANDS + 1), side="right").tolist(),
            "weights": weights.tolist(),
            "smoothing": self.smoothing.tolist(),
            "remaining": self.remaining,
            "gains": self.gains.tolist(),
            "logarithms": self.logarithms.tolist(),
            "state_bytes": self.state_bytes,
        }

    @property
    def state_bytes(self) -> int:
        """Samples of a window, the points of its transform, noise of 40 bands, three counters."""
        return 2 * WINDOW + 4 * POINTS + 4 * BANDS + 8


def _scaled(values: F32) -> I64:
    return np.asarray(np.floor(values * np.float32(ONE) + np.float32(0.5)), np.int64)


def _mel(hertz: F32) -> F32:
    ratio = (hertz / np.float32(700)).astype(np.float64)
    return np.float32(1127) * np.log1p(ratio).astype(np.float32)


def _word(values: I64) -> I64:
    return values.astype(np.int16).astype(np.int64)


def _divided(values: I64, by: int) -> I64:
    return (values * (32_767 // by) + (1 << 14)) >> 15


def _product(re: I64, im: I64, cos: I64, sin: I64) -> tuple[I64, I64]:
    """Multiply complex numbers, the second of 2^15, and round."""
    half = 1 << 14
    return _word((re * cos - im * sin + half) >> 15), _word((re * sin + im * cos + half) >> 15)


def _bits(values: I64) -> I64:
    """Count the bits that each has, below 2^53."""
    _, bits = np.frexp(values.astype(np.float64))
    return np.asarray(bits, np.int64)


def _shrunk(snr: I64) -> I64:
    snr = snr & 0xFFFFFFFF
    small = (snr * snr) >> (2 + 2 * SNR_BITS - OUTPUT_BITS)
    large = (snr >> (SNR_BITS - OUTPUT_BITS)) - (1 << OUTPUT_BITS)
    return np.asarray(np.where(snr < 2 << SNR_BITS, small, large))
