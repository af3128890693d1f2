"""Sounds: what no network should be trained on, Speech Commands in small, synthetic speech."""

import hashlib
import io
import os
import shutil
import tarfile
import wave
from pathlib import Path

import numpy as np
import pytest

from pipeline.artifacts import write_npz
from pipeline.datasets import espeak, sounds
from pipeline.datasets.espeak import OTHERS, VOICES, Espeak, Utterance
from pipeline.datasets.sounds import CLASSES, WORDS
from pipeline.datasets.speech_commands import SpeechCommands, part_of
from pipeline.datasets.spoken_keywords import SpokenKeywords, split
from pipeline.datasets.store import File, SourceError
from pipeline.errors import ThimbleError
from tests.programs import program, refusal, written


def wav(samples: np.ndarray, rate: int = 16_000, channels: int = 1, width: int = 2) -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setframerate(rate)
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.writeframes(samples.astype(f"<i{width}" if width > 1 else "u1").tobytes())
    return stream.getvalue()


TONE = (np.sin(np.arange(12_000) / 9) * 9_000).astype(np.int16)


def test_the_samples_of_a_file_come_back_unless_silent_or_clipped() -> None:
    assert (sounds.parse(wav(TONE), "a.wav") == TONE).all()
    padded = sounds.padded(TONE)
    assert len(padded) == 16_000 and (padded[:12_000] == TONE).all() and not padded[12_000:].any()
    noise = sounds.parse(wav(np.tile(TONE, 3)), "noise.wav", most=None)
    assert len(noise) == 36_000, "it may be longer than a second"
    silent = np.zeros(16_000, np.int16)
    clipped = np.where(TONE > 0, 32_767, -32_768).astype(np.int16)
    sounds.check_word("yes", [TONE] * 19 + [silent])  # recordings of people have some
    with pytest.raises(ThimbleError, match="yes: 3 of 12 sounds hold nothing but zeros"):
        sounds.check_word("yes", [TONE] * 9 + [silent] * 3)
    with pytest.raises(ThimbleError, match="yes: 3 of 12 sounds are clipped: record"):
        sounds.check_word("yes", [TONE] * 9 + [clipped] * 3)


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
    assert said in refusal(lambda: sounds.parse(content, "a.wav"))


def test_classes_and_what_they_need() -> None:
    """In the order of MLPerf Tiny."""
    assert (*sorted(sounds.WORDS), "silence", "unknown") == sounds.CLASSES


SPEAKERS = [f"{number:08x}" for number in range(0, 1 << 32, (1 << 32) // 23)]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Word w of speaker s is a tone of its own, so that every sound can be told."""
    for number, word in enumerate((*WORDS, "bed", "cat")):
        for place, speaker in enumerate(SPEAKERS):
            tone = np.sin(np.arange(8_000) * (number + 1) / 90) * (1_000 + 100 * place)
            written(tmp_path, {f"set/{word}/{speaker}_nohash_0.wav": wav(tone)})
    noise = wav(np.random.default_rng(0).normal(0, 500, 40_000))
    return written(tmp_path / "set", {"_background_noise_/hum.wav": noise})


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


def test_twelve_classes_and_nobody_in_two_parts(archive: Path, tmp_path: Path) -> None:
    """Packed, it is the same; its lists come before the hash."""
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
    packed = tmp_path / "speech_commands_v0.02.tar.gz"
    with tarfile.open(packed, "w:gz") as file:
        file.add(archive, ".")
    again = SpeechCommands(path=str(packed)).arrays()
    assert all((data[key] == again[key]).all() for key in data)
    (archive / "validation_list.txt").write_text(f"yes/{SPEAKERS[0]}_nohash_0.wav\n")
    (archive / "testing_list.txt").write_text(f"no/{SPEAKERS[1]}_nohash_0.wav\n")
    data = SpeechCommands(path=str(archive)).arrays()
    assert (data["validation_labels"] < 10).sum() == (data["test_labels"] < 10).sum() == 1
    assert (data["train_labels"] < 10).sum() == 10 * len(SPEAKERS) - 2


def test_what_is_missing_is_said(archive: Path, tmp_path: Path) -> None:
    def said(path: Path | str) -> str:
        return refusal(SpeechCommands(path=str(path)).arrays)

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
    for path in (archive / "left").iterdir():
        path.unlink()
    (archive / "left" / "0_nohash_0.wav").write_bytes(wav(TONE))
    hum = archive / "_background_noise_" / "hum.wav"
    hum.write_bytes(wav(np.ones(99)))
    assert "a second of noise is needed" in said(archive), "for silence"
    hum.unlink()
    assert "has no _background_noise_" in said(archive)


@pytest.fixture
def spoken(tmp_path: Path, store_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of every voice's words: tones as high as the word's, as long as the voice's."""
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


def test_no_voice_is_in_two_parts_and_each_says_every_word_in_several_ways() -> None:
    train, validation, test = (set(part) for part in split())
    assert len(train | validation | test) == len(VOICES) >= 40
    assert not train & validation and not train & test and not validation & test
    assert len(set(VOICES)) == len(VOICES)
    said = espeak.utterances()
    assert said == espeak.utterances()
    by_word = {(each.voice, each.word) for each in said}
    assert len(by_word) == len(VOICES) * (len(WORDS) + len(OTHERS))
    assert len({(each.accent, each.words_per_minute, each.pitch) for each in said}) > 1_000
    assert not set(WORDS) & set(OTHERS)


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
def test_silence_alone_is_silent_and_other_rates_change_nothing_else() -> None:
    data = SpokenKeywords(train=240, validation=12, test=12).arrays()
    words = data["train_labels"] != CLASSES.index("silence")
    loudest = np.abs(data["train_images"].astype(int)).max(axis=1)
    assert loudest[words].min() > 1_000 and loudest[~words].min() < 1_000
    time = np.arange(22_050) / 22_050

    def through(hertz: float) -> np.ndarray:
        return espeak.resampled((10_000 * np.sin(2 * np.pi * hertz * time)).astype(np.int16))

    made, wanted = through(440), 10_000 * np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    assert len(made) == 16_000
    assert np.abs(made - wanted)[50:-50].max() < 60
    assert np.abs(through(9_500).astype(int)[50:-50]).max() < 1_000


def test_others_are_refused(spoken: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tell the speech of another release of espeak-ng apart: the hash is that of 1.51."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    spoken.write_bytes(spoken.read_bytes()[:-1])
    said = refusal(SpokenKeywords().arrays)
    assert "espeak-ng (not installed: sudo apt-get install espeak-ng)" in said


def test_quiet_ends_are_cut_off_and_complaints_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = np.concatenate([np.zeros(500), np.full(99, 4_000), np.full(500, 299)]).astype(np.int16)
    assert (espeak.trimmed(sound) == 4_000).all()
    with pytest.raises(SourceError, match="cannot be heard"):
        espeak.trimmed(sound[:500])
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
