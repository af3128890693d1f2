"""Figures of the spectrogram by square waves, of synthetic speech.

    python -m tests.frontends.figures FOLDER

writes ``spectrograms.png``, what figure 12 of Gural & Murmann 2019 shows: the word "yes", on top
as log-mel bands, below as square waves see it; and ``leakage.png``: what a tone leaves in a bin,
beside the odd harmonics of eq. 31. The first needs espeak-ng.
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pipeline.datasets.espeak import VOICES, Utterance, speak
from pipeline.datasets.sounds import SAMPLES, WORDS
from pipeline.frontends.mfcc import STRIDE, WINDOW, Mfcc
from pipeline.frontends.square_wave import TURN, SquareWave

BIN = 8
"""Whose leakage is drawn."""


def word() -> np.ndarray:
    """The second in whose middle it is."""
    piece = speak(Utterance(VOICES.index("f2"), WORDS.index("yes"), "en-us", 150, 50))
    noise = np.random.default_rng(0).normal(0, 20, SAMPLES)
    start = (SAMPLES - len(piece)) // 2
    noise[start : start + len(piece)] += piece
    return np.clip(np.rint(noise), -32_768, 32_767).astype(np.int16)


def spectrograms() -> Figure:
    sound, reference, ear = word(), Mfcc(), SquareWave()
    starts = np.arange(reference.frames) * STRIDE
    windows = sound.astype(np.int64)[starts[:, None] + np.arange(WINDOW)]
    shown = (
        ("Log-mel, 40 bands, 40 ms windows: “yes”, synthetic speech", reference.log_mel(windows).T),
        ("Square waves, 24 bins, 5 chunks of 10 ms", ear.features(sound[None])[0, :, :, 0].T),
    )
    found = Figure(figsize=(8, 5), layout="constrained")
    for axes, (title, picture) in zip(found.subplots(2), shown, strict=True):
        axes.imshow(picture, origin="lower", aspect="auto", cmap="magma", extent=(0, 1, 0, 1))
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_yticks([0, 1], ["low", "4 kHz"])
    axes.set_xlabel("seconds")
    return found


def leakage() -> tuple[np.ndarray, np.ndarray]:
    """Return the power, in dB of a tone's at the bin, that tones at its multiples leave there."""
    ear, times = SquareWave(), np.linspace(0.5, 7.5, 281)
    turns = np.arange(ear.samples) * times[:, None] * ear.steps[BIN] / TURN
    tones = np.rint(12_000 * np.sin(2 * np.pi * turns)).astype(np.int16)
    power = ear.power(tones)[:, 20:, BIN].mean(axis=1)
    return times, 10 * np.log10((power + 1) / power[np.argmin(np.abs(times - 1))])


def leaks() -> Figure:
    times, levels = leakage()
    found = Figure(figsize=(8, 3), layout="constrained")
    axes = found.subplots()
    axes.plot(times, levels, label="measured")
    odd = np.array([1, 3, 5, 7])
    axes.plot(odd, -20 * np.log10(odd), "o", label="eq. 31: 1/ℓ² of the power")
    axes.set(xlabel="tone, in multiples of the bin's frequency", ylabel="dB", ylim=(-60, 5))
    axes.legend(frameon=False)
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    spectrograms().savefig(folder / "spectrograms.png", dpi=110)
    leaks().savefig(folder / "leakage.png", dpi=110)
    times, levels = leakage()
    for harmonic in (1, 3, 5, 7):
        level = levels[np.argmin(np.abs(times - harmonic))]
        print(f"harmonic {harmonic}: {level:6.2f} dB, eq. 31 {-20 * np.log10(harmonic):6.2f} dB")


if __name__ == "__main__":
    main()
