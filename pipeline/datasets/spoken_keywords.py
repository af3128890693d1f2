"""Synthetic speech: ten words, silence and unknown, spoken by espeak-ng and mixed with noise.

No person is in it: what a network reaches here says little about what it does with people. It
stands in for Speech Commands where that cannot be had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pipeline.artifacts import Arrays, read_npz
from pipeline.datasets.dataset import FetchedDataset, Split, parts_of
from pipeline.datasets.espeak import VOICES, Espeak
from pipeline.datasets.sounds import (
    CLASSES,
    I16,
    SAMPLES,
    SILENCE,
    UNKNOWN,
    WORDS,
)
from pipeline.datasets.store import File, Source
from pipeline.errors import ThimbleError

FILE = "utterances.npz"
PARTS = ("train", "validation", "test")
HELD_OUT = {"validation": 8, "test": 16}
"""Voices that no other part has."""
PEAK = (1_500, 24_000)
"""Range of a word's loudest sample; drawn evenly on a scale of decibels, like all that follows."""
NOISE = (10, 1_000)
"""Range of the noise's effective value (RMS)."""


@dataclass(frozen=True)
class SpokenKeywords(FetchedDataset):
    """``train``, ``validation`` and ``test`` sounds, evenly of all twelve classes; the voices of
    the three are different ones."""

    validation: int = 1_200
    train: int = 12_000
    test: int = 1_200
    seed: int = 0

    title: ClassVar[str] = "spoken_keywords"
    files: ClassVar[tuple[File, ...]] = (
        File(FILE, "12b57bc3f1d88ca90385c49eebe31e64c739a1a99fe59cca98dc6f5adbc4caef"),
    )
    sources: ClassVar[tuple[Source, ...]] = (Espeak(),)

    def arrays(self) -> Arrays:
        counts = [getattr(self, part) for part in PARTS]
        if min(counts) < len(CLASSES):
            raise ThimbleError(
                f"data: {counts[0]}, {counts[1]} and {counts[2]} sounds (train, validation, test): "
                f"each part needs {len(CLASSES)} at least, one of each class"
            )
        spoken = read_npz(self.folder() / FILE)
        pieces = np.split(spoken["samples"], spoken["ends"][:-1])
        words = range(int(spoken["word"].max()) + 1)
        parts = []
        for number, (voices, count) in enumerate(zip(split(), counts, strict=True)):
            mine = np.isin(spoken["voice"], voices)
            said = [
                [pieces[index] for index in np.flatnonzero(mine & (spoken["word"] == word))]
                for word in words
            ]
            parts.append(mixed(said, count, np.random.default_rng((self.seed, number))))
        return parts_of(*parts)


def split() -> tuple[list[int], list[int], list[int]]:
    """Return the voices of the three parts, by their numbers."""
    order = np.random.default_rng(len(VOICES)).permutation(len(VOICES)).tolist()
    held, tested = HELD_OUT["validation"], HELD_OUT["test"]
    return sorted(order[held + tested :]), sorted(order[:held]), sorted(order[held : held + tested])


def mixed(spoken: list[list[I16]], count: int, random: np.random.Generator) -> Split:
    """``count`` sounds.

    Args:
        spoken: the utterances of each word: the ten, then unknown ones.
    """
    samples = np.empty((count, SAMPLES), np.int16)
    labels = (np.arange(count) % len(CLASSES)).astype(np.uint8)
    unknown = range(len(WORDS), len(spoken))
    for index, label in enumerate(labels):
        sound = _noise(random) * _between(NOISE, random)
        if CLASSES[label] != SILENCE:
            word = random.choice(unknown) if CLASSES[label] == UNKNOWN else label
            piece = spoken[word][random.integers(len(spoken[word]))].astype(np.float64)
            start = random.integers(SAMPLES - len(piece) + 1)
            loud = _between(PEAK, random) / np.abs(piece).max()
            sound[start : start + len(piece)] += piece * loud
        samples[index] = np.clip(np.rint(sound), -32768, 32767)
    order = random.permutation(count)
    return Split(samples[order], labels[order])


def _between(bounds: tuple[int, int], random: np.random.Generator) -> float:
    low, high = np.log(bounds)
    return float(np.exp(random.uniform(low, high)))


def _noise(random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Return a second of it with effective value 1, anything between white and brown."""
    spectrum = np.fft.rfft(random.standard_normal(SAMPLES))
    spectrum[1:] *= np.arange(1, len(spectrum)) ** -random.uniform(0, 1)
    spectrum[0] = 0
    noise = np.fft.irfft(spectrum, SAMPLES)
    return np.asarray(noise / np.sqrt(np.mean(noise**2)), np.float64)
