"""An archive like the official one, in small: ten words, others, noises, two lists."""

import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from pipeline.datasets.sounds import CLASSES, WORDS
from pipeline.datasets.speech_commands import SpeechCommands, part_of
from pipeline.errors import ThimbleError
from tests.datasets.test_sounds import wav

SPEAKERS = [f"{number:08x}" for number in range(0, 1 << 32, (1 << 32) // 23)]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Word w of speaker s is a tone of its own, so that every sound can be told."""
    for number, word in enumerate((*WORDS, "bed", "cat")):
        folder = tmp_path / "set" / word
        folder.mkdir(parents=True)
        for place, speaker in enumerate(SPEAKERS):
            tone = np.sin(np.arange(8_000) * (number + 1) / 90) * (1_000 + 100 * place)
            (folder / f"{speaker}_nohash_0.wav").write_bytes(wav(tone))
    noises = tmp_path / "set" / "_background_noise_"
    noises.mkdir()
    (noises / "hum.wav").write_bytes(wav(np.random.default_rng(0).normal(0, 500, 40_000)))
    return tmp_path / "set"


OFFICIALLY_TESTED = (
    *("bed/0c40e715", "bed/0ea0e2f4", "bird/42beb5eb", "bird/44260689", "bird/44715c1c"),
    *("down/022cd682", "down/096456f9"),
)
"""Some names in the data set's own testing list."""


def test_the_official_hash() -> None:
    """The function of the data set's README says what its list says."""
    assert {part_of(f"{name}_nohash_0.wav") for name in OFFICIALLY_TESTED} == {"test"}
    assert part_of("right/bb05582b_nohash_3.wav") == part_of("yes/bb05582b_nohash_0.wav")
    shares = [part_of(f"{number:08x}_nohash_1.wav") for number in range(4_000)]
    assert 0.08 < shares.count("validation") / 4_000 < 0.12
    assert 0.08 < shares.count("test") / 4_000 < 0.12


def test_twelve_classes_and_nobody_in_two_parts(archive: Path) -> None:
    data = SpeechCommands(path=str(archive)).arrays()
    seen: dict[str, set[int]] = {}
    for part in ("train", "validation", "test"):
        images, labels = data[f"{part}_images"], data[f"{part}_labels"]
        assert images.shape == (len(labels), 16_000) and images.dtype == np.int16
        speakers = sum(part_of(f"{each}_nohash_0.wav") == part for each in SPEAKERS)
        counts = np.bincount(labels, minlength=12)
        assert (counts[:10] == speakers).all()
        assert counts[CLASSES.index("silence")] == speakers
        assert counts[CLASSES.index("unknown")] == speakers
        loud = np.abs(images[labels < 10].astype(int)).max(axis=1)
        seen[part] = {round((peak - 1_000) / 100) for peak in loud}
    assert not seen["train"] & seen["test"] and not seen["train"] & seen["validation"]


def test_its_lists_come_before_the_hash(archive: Path) -> None:
    (archive / "validation_list.txt").write_text(f"yes/{SPEAKERS[0]}_nohash_0.wav\n")
    (archive / "testing_list.txt").write_text(f"no/{SPEAKERS[1]}_nohash_0.wav\n")
    data = SpeechCommands(path=str(archive)).arrays()
    assert (data["validation_labels"] < 10).sum() == (data["test_labels"] < 10).sum() == 1
    assert (data["train_labels"] < 10).sum() == 10 * len(SPEAKERS) - 2


def test_the_packed_archive_is_the_same(archive: Path, tmp_path: Path) -> None:
    packed = tmp_path / "speech_commands_v0.02.tar.gz"
    with tarfile.open(packed, "w:gz") as file:
        file.add(archive, ".")
    folder = SpeechCommands(path=str(archive)).arrays()
    again = SpeechCommands(path=str(packed)).arrays()
    assert all((folder[key] == again[key]).all() for key in folder)


def test_what_is_missing_is_said(archive: Path, tmp_path: Path) -> None:
    def said(path: Path | str) -> str:
        with pytest.raises(ThimbleError) as error:
            SpeechCommands(path=str(path)).arrays()
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "needs data.path=FILE" in said("")
    (tmp_path / "empty").mkdir()
    assert "has no sounds of down, go" in said(tmp_path / "empty")
    (tmp_path / "text.tar.gz").write_text("no archive")
    assert "is no archive of Speech Commands" in said(tmp_path / "text.tar.gz")
    for file in (archive / "left").iterdir():
        file.unlink()
    assert "has no sounds of left" in said(archive)
    (archive / "left" / "0_nohash_0.wav").write_bytes(wav(np.ones(99), rate=8_000))
    assert "left/0_nohash_0.wav has 8,000 samples a second" in said(archive)
    os.mkfifo(archive / "left" / "00_nohash_0.wav")
    assert "00_nohash_0.wav is a pipe or a device: give a file" in said(archive)


def test_silence_needs_noise(archive: Path) -> None:
    (archive / "_background_noise_" / "hum.wav").write_bytes(wav(np.ones(99)))
    with pytest.raises(ThimbleError, match="a second of noise is needed"):
        SpeechCommands(path=str(archive)).arrays()
    (archive / "_background_noise_" / "hum.wav").unlink()
    with pytest.raises(ThimbleError, match="has no _background_noise_"):
        SpeechCommands(path=str(archive)).arrays()
