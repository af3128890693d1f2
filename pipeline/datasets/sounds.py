"""Labelled sounds: one second each, 16-bit samples at 16 kHz, of twelve classes."""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError

I16 = npt.NDArray[np.int16]

RATE_HZ = 16_000
SAMPLES = RATE_HZ
"""Samples of one sound: shorter ones end in zeros."""

WORDS = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes")
SILENCE, UNKNOWN = "silence", "unknown"
CLASSES = (*WORDS, SILENCE, UNKNOWN)
"""In the order of MLPerf Tiny's keyword network."""

FULL_SCALE = 32_767
CLIPPED_SHARE = 0.1
"""Share of a sound's samples at full scale from which on it counts as clipped."""
BAD_SHARE = 0.1
"""Share of a word's sounds that may be silent or clipped: recordings of people have some."""


def parse(content: bytes, name: str, *, most: int | None = SAMPLES) -> I16:
    """Return the samples of a WAV file; ``most`` is the longest that is taken, None for any.

    Raises:
        ThimbleError: for another format, rate or number of channels, an empty or a damaged file,
            and for one that is longer than ``most``.
    """
    try:
        with wave.open(io.BytesIO(content)) as file:
            rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
            claimed, frames = file.getnframes(), file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ThimbleError(f"{name} is no WAV file of plain samples ({error})") from None
    made = f"sox {name} -r {RATE_HZ} -c 1 -b 16 OUT.wav makes it one"
    if channels != 1:
        raise ThimbleError(f"{name} has {channels} channels, one is needed: {made}")
    if rate != RATE_HZ:
        raise ThimbleError(f"{name} has {rate:,} samples a second, {RATE_HZ:,} are needed: {made}")
    if width != 2:
        raise ThimbleError(f"{name} has samples of {8 * width} bits, 16 are needed: {made}")
    if len(frames) != claimed * width:
        raise ThimbleError(f"{name} says {claimed} samples and has {len(frames) // width}: cut off")
    if not claimed:
        raise ThimbleError(f"{name} has no samples: leave it out")
    if most is not None and claimed > most:
        raise ThimbleError(
            f"{name} has {claimed:,} samples, {most:,} at most are taken (a second): cut it"
        )
    return np.frombuffer(frames, "<i2").astype(np.int16)


def padded(samples: I16) -> I16:
    """Return one second: zeros behind what is shorter."""
    return np.concatenate([samples, np.zeros(SAMPLES - len(samples), np.int16)])


def check_word(word: str, sounds: Sequence[I16]) -> None:
    """Raises ThimbleError when too many recordings of ``word`` are silent or clipped."""
    silent = sum(not sound.any() for sound in sounds)
    clipped = sum(float((np.abs(sound.astype(np.int32)) >= FULL_SCALE).mean()) > CLIPPED_SHARE
                  for sound in sounds)  # fmt: skip
    for count, what, mend in (
        (silent, "hold nothing but zeros", "leave them out"),
        (clipped, "are clipped", "record them at a lower level"),
    ):
        if count > BAD_SHARE * len(sounds):
            raise ThimbleError(f"{word}: {count} of {len(sounds)} sounds {what}: {mend}")
