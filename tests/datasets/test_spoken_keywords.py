"""Synthetic speech: mixed from utterances that stand in for espeak-ng's, and a few of its own."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from pipeline.artifacts import write_npz
from pipeline.datasets import espeak
from pipeline.datasets.espeak import OTHERS, VOICES, Espeak, Utterance
from pipeline.datasets.sounds import CLASSES, WORDS
from pipeline.datasets.spoken_keywords import SpokenKeywords, split
from pipeline.datasets.store import File, SourceError
from pipeline.errors import ThimbleError
from tests.datasets.standins import program


@pytest.fixture
def spoken(tmp_path: Path, store_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store in which every voice has said every word: a tone whose height is the word's and whose
    length the voice's."""
    pieces, voice, word = [], [], []
    for speaker in range(len(VOICES)):
        for said in range(len(WORDS) + len(OTHERS)):
            time = np.arange(2_000 + 40 * speaker)
            pieces.append((8_000 * np.sin(time * (said + 1) / 40)).astype(np.int16))
            voice.append(speaker)
            word.append(said)
    path = store_home / "spoken_keywords" / "utterances.npz"
    ends = np.cumsum([len(piece) for piece in pieces])
    write_npz(path, {"samples": np.concatenate(pieces), "ends": ends,
                     "voice": np.array(voice), "word": np.array(word)})  # fmt: skip
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(SpokenKeywords, "files", (File("utterances.npz", digest),))
    return path


def test_no_voice_is_in_two_parts() -> None:
    train, validation, test = (set(part) for part in split())
    assert len(train | validation | test) == len(VOICES) >= 40
    assert not train & validation and not train & test and not validation & test
    assert len(set(VOICES)) == len(VOICES)


@pytest.mark.usefixtures("spoken")
def test_twelve_classes_the_same_every_time() -> None:
    sizes = {"train": 60, "validation": 24, "test": 36}
    first, again, other = (SpokenKeywords(**sizes, seed=seed).arrays() for seed in (0, 0, 1))
    for part, count in sizes.items():
        assert first[f"{part}_images"].shape == (count, 16_000)
        assert (np.bincount(first[f"{part}_labels"]) == count // 12).all()
    assert all((first[key] == again[key]).all() for key in first)
    assert not (first["train_images"] == other["train_images"]).all()
    with pytest.raises(ThimbleError, match="each part needs 12 at least"):
        SpokenKeywords(train=60, validation=11, test=12).arrays()


@pytest.mark.usefixtures("spoken")
def test_only_silence_is_silent() -> None:
    data = SpokenKeywords(train=240, validation=12, test=12).arrays()
    words = data["train_labels"] != CLASSES.index("silence")
    loudest = np.abs(data["train_images"].astype(int)).max(axis=1)
    assert loudest[words].min() > 1_000 and loudest[~words].min() < 1_000


def test_other_utterances_are_refused(
    spoken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another release of espeak-ng speaks is another set: the hash is that of 1.51."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    spoken.write_bytes(spoken.read_bytes()[:-1])
    with pytest.raises(ThimbleError) as error:
        SpokenKeywords().arrays()
    assert "espeak-ng (not installed: sudo apt-get install espeak-ng)" in str(error.value)
    assert "\n" not in str(error.value)


def test_every_voice_says_every_word_in_more_than_one_way() -> None:
    said = espeak.utterances()
    assert said == espeak.utterances()
    by_word = {(each.voice, each.word) for each in said}
    assert len(by_word) == len(VOICES) * (len(WORDS) + len(OTHERS))
    assert len({(each.accent, each.words_per_minute, each.pitch) for each in said}) > 1_000
    assert not set(WORDS) & set(OTHERS)


def test_the_rate_is_changed_and_nothing_else() -> None:
    """A tone stays as high and as loud; one that 16 kHz cannot carry goes."""
    time = np.arange(22_050) / 22_050

    def through(hertz: float) -> np.ndarray:
        return espeak.resampled((10_000 * np.sin(2 * np.pi * hertz * time)).astype(np.int16))

    made, wanted = through(440), 10_000 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    assert len(made) == 16_000
    assert np.abs(made - wanted)[50:-50].max() < 60
    assert np.abs(through(9_500).astype(int)[50:-50]).max() < 1_000


def test_quiet_ends_are_cut_off() -> None:
    sound = np.concatenate([np.zeros(500), np.full(99, 4_000), np.full(500, 299)]).astype(np.int16)
    assert (espeak.trimmed(sound) == 4_000).all()
    with pytest.raises(SourceError, match="cannot be heard"):
        espeak.trimmed(sound[:500])


def test_what_espeak_complains_of_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "espeak-ng", "echo 'no such voice' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    with pytest.raises(SourceError, match="no such voice"):
        Espeak().download(tmp_path, ["utterances.npz"])


@pytest.mark.skipif(
    shutil.which("espeak-ng") is None, reason="no espeak-ng: sudo apt-get install espeak-ng"
)
def test_espeak_speaks_alike_twice() -> None:
    """The one test that needs it: `make` installs it."""
    utterance = Utterance(VOICES.index("f2"), WORDS.index("yes"), "en-us", 150, 50)
    first = espeak.speak(utterance)
    assert 2_000 < len(first) < 16_000
    assert (first == espeak.speak(utterance)).all()
