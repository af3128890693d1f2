"""Sounds that no network should be trained on are refused, each in one line."""

import io
import wave

import numpy as np
import pytest

from pipeline.datasets import sounds
from pipeline.datasets.speech_commands import SpeechCommands
from pipeline.datasets.spoken_keywords import SpokenKeywords
from pipeline.errors import ThimbleError


def wav(samples: np.ndarray, rate: int = 16_000, channels: int = 1, width: int = 2) -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setframerate(rate)
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.writeframes(samples.astype(f"<i{width}" if width > 1 else "u1").tobytes())
    return stream.getvalue()


TONE = (np.sin(np.arange(12_000) / 9) * 9_000).astype(np.int16)


def test_the_samples_of_a_file_come_back() -> None:
    assert (sounds.parse(wav(TONE), "a.wav") == TONE).all()
    padded = sounds.padded(TONE)
    assert len(padded) == 16_000 and (padded[:12_000] == TONE).all() and not padded[12_000:].any()
    noise = sounds.parse(wav(np.tile(TONE, 3)), "noise.wav", most=None)
    assert len(noise) == 36_000, "it may be longer than a second"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (wav(TONE, rate=22_050), "a.wav has 22,050 samples a second, 16,000 are needed"),
        (wav(TONE, channels=2), "a.wav has 2 channels, one is needed"),
        (wav(TONE, width=1), "a.wav has samples of 8 bits, 16 are needed"),
        (wav(TONE[:0]), "a.wav has no samples: leave it out"),
        (wav(np.tile(TONE, 2)), "a.wav has 24,000 samples, 16,000 at most"),
        (wav(TONE)[:-100], "a.wav says 12000 samples and has 11950: cut off"),
        (b"RIFF", "a.wav is no WAV file of plain samples"),
        (b"hello, this is text and no sound at all", "a.wav is no WAV file of plain samples"),
    ],
)
def test_a_file_that_is_something_else(content: bytes, said: str) -> None:
    with pytest.raises(ThimbleError) as error:
        sounds.parse(content, "a.wav")
    assert said in str(error.value) and "\n" not in str(error.value)


def test_words_that_are_silent_or_clipped() -> None:
    silent = np.zeros(16_000, np.int16)
    clipped = np.where(TONE > 0, 32_767, -32_768).astype(np.int16)
    sounds.check_word("yes", [TONE] * 19 + [silent])  # recordings of people have some
    with pytest.raises(ThimbleError, match="yes: 3 of 12 sounds hold nothing but zeros"):
        sounds.check_word("yes", [TONE] * 9 + [silent] * 3)
    with pytest.raises(ThimbleError, match="yes: 3 of 12 sounds are clipped: record"):
        sounds.check_word("yes", [TONE] * 9 + [clipped] * 3)


def test_classes_and_what_they_need() -> None:
    """In the order of MLPerf Tiny."""
    assert (*sorted(sounds.WORDS), "silence", "unknown") == sounds.CLASSES
    for made in (SpeechCommands(), SpokenKeywords()):
        with pytest.raises(ThimbleError, match="choose frontend=square_wave or mfcc"):
            made.read()
