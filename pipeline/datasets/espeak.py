"""Words spoken by Debian's ``espeak-ng``: the same samples wherever it is the same release."""

from __future__ import annotations

import io
import shutil
import subprocess
import wave
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import write_npz
from pipeline.datasets.progress import busy
from pipeline.datasets.sounds import I16, SAMPLES, WORDS
from pipeline.datasets.store import SourceError

SPOKEN_HZ = 22_050
"""Sample rate of espeak-ng's own voices."""
UP, DOWN = 320, 441
"""16,000 / 22,050."""
TAPS = 24
"""Taps of the filter that changes the rate, at 22,050 Hz; its coefficients are in 1 / 2**15."""
QUIET = 300
"""Samples up to this, before the first louder one and after the last, are cut off."""

VOICES = tuple(
    """
    Alex Alicia Andrea Andy Annie AnxiousAndy Denis Diogo Gene Henrique Hugo Jacky Lee Marco Mario
    Michael Mike Nguyen Tweaky adam anika antonio aunty belinda benjamin boris caleb croak david ed
    edward f1 f2 f3 f4 f5 grandma grandpa gustave iven iven2 iven3 john kaukovalta klatt klatt2
    klatt3 klatt4 linda m1 m2 m3 m4 m5 m6 m7 m8 marcelo max michel miguel norbert pablo paul pedro
    quincy rob robert sandro shelby steph steph2 travis victor zac
    """.split()  # noqa: SIM905 - as many names as this are read as text
)
"""Variants of espeak-ng 1.51, without those of robots and whispers."""

ACCENTS = ("en-us", "en-gb", "en-gb-scotland", "en-029", "en-gb-x-rp", "en-us-nyc")

OTHERS = tuple(
    """
    backward bed bird cat dog eight five follow forward four happy house learn marvin nine one seven
    sheila six three tree two visual wow zero
    """.split()  # noqa: SIM905
)
"""Unknown words: those that Speech Commands has besides the ten."""

TAKES, TAKES_OF_OTHERS = 3, 1
"""Takes of each word and of each other word by each voice, with other accents, speeds, pitches."""


@dataclass(frozen=True)
class Utterance:
    """``voice`` and ``word`` are numbers in ``VOICES`` and in ``(*WORDS, *OTHERS)``."""

    voice: int
    word: int
    accent: str
    words_per_minute: int
    pitch: int
    """0…99."""

    @property
    def command(self) -> list[str]:
        text = (*WORDS, *OTHERS)[self.word]
        return [
            *("espeak-ng", "--stdout", "-v", f"{self.accent}+{VOICES[self.voice]}"),
            *("-s", str(self.words_per_minute), "-p", str(self.pitch), text),
        ]


def utterances() -> list[Utterance]:
    """Return all that are spoken, drawn once and for all."""
    random = np.random.default_rng(SPOKEN_HZ)
    words = len(WORDS) + len(OTHERS)
    takes = [TAKES if word < len(WORDS) else TAKES_OF_OTHERS for word in range(words)]
    return [
        Utterance(
            voice,
            word,
            ACCENTS[random.integers(len(ACCENTS))],
            int(random.integers(120, 211)),
            int(random.integers(20, 81)),
        )
        for voice in range(len(VOICES))
        for word in range(words)
        for _ in range(takes[word])
    ]


@dataclass(frozen=True)
class Espeak:
    """A source of one file, ``utterances.npz``: what ``utterances()`` says, each cut to its sound.

    ``samples`` of all one behind another, ``ends`` where each ends, ``voice`` and ``word``.
    """

    def __str__(self) -> str:
        return "espeak-ng"

    def download(self, folder: Path, names: Sequence[str]) -> None:
        if shutil.which("espeak-ng") is None:
            raise SourceError("not installed: sudo apt-get install espeak-ng")
        wanted = utterances()
        with busy("espeak-ng speaks"), ThreadPoolExecutor(2) as pool:
            spoken = list(pool.map(speak, wanted))
        write_npz(
            folder / names[0],
            {
                "samples": np.concatenate(spoken),
                "ends": np.cumsum([len(each) for each in spoken]),
                "voice": np.array([each.voice for each in wanted], np.uint8),
                "word": np.array([each.word for each in wanted], np.uint8),
            },
        )


def speak(utterance: Utterance) -> I16:
    """At 16 kHz, a second at most: what espeak-ng said twice, since now and then, on a busy
    machine, it says a little else."""
    said: set[bytes] = set()
    while (found := _once(utterance)).tobytes() not in said:
        said.add(found.tobytes())
    return found


def _once(utterance: Utterance) -> I16:
    done = subprocess.run(utterance.command, capture_output=True, check=False)
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip() or f"ended with {done.returncode}"
        raise SourceError(f"{' '.join(utterance.command)}: {said.splitlines()[0]}")
    with wave.open(io.BytesIO(done.stdout)) as file:
        rate = file.getframerate()
    if rate != SPOKEN_HZ:
        raise SourceError(f"speaks {rate:,} samples a second, {SPOKEN_HZ:,} were expected")
    # on a pipe the header's length is a guess: samples are what follows its 44 bytes
    return trimmed(resampled(np.frombuffer(done.stdout[44:], "<i2")))


def resampled(samples: npt.NDArray[np.int16]) -> I16:
    """Convert 22,050 to 16,000 Hz by a windowed sinc, in integers: equal on every machine."""
    count = len(samples) * UP // DOWN
    place = np.arange(count) * DOWN
    whole, phase = place // UP, place % UP
    held = np.concatenate([np.zeros(TAPS // 2, np.int64), samples, np.zeros(TAPS, np.int64)])
    windows = held[whole[:, None] + np.arange(TAPS)]
    sums = (windows * _filters()[phase]).sum(axis=1)
    made: I16 = np.clip((sums + (1 << 14)) >> 15, -32768, 32767).astype(np.int16)
    return made


@cache
def _filters() -> npt.NDArray[np.int64]:
    """(UP, TAPS): for each phase the coefficients, of 1 / 2**15 and with 2**15 as their sum."""
    cut = UP / DOWN * 0.95
    away = np.arange(TAPS) - TAPS // 2 - np.arange(UP)[:, None] / UP
    window = np.cos(np.pi * away / (TAPS + 2)) ** 2
    shape = np.sinc(away * cut) * window
    filters = np.rint(shape / shape.sum(axis=1, keepdims=True) * (1 << 15))
    return np.asarray(filters, np.int64)


def trimmed(samples: I16) -> I16:
    """Keep from its first to its last sample that can be heard."""
    loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > QUIET)
    if not len(loud):
        raise SourceError("spoke a word that cannot be heard")
    return samples[loud[0] : loud[-1] + 1][:SAMPLES]
