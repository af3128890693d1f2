"""Speech Commands (Warden 2018, arXiv 1804.03209): people who say a word, 12 classes of them.

Ten words, silence and unknown; the split is the official one, by the speaker's hash. Silence is cut
out of the background noises at random loudness; both it and unknown have a tenth as many sounds as
all words together, as in the data set's own example.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from pipeline.artifacts import Arrays, regular
from pipeline.datasets.dataset import Dataset, Split, parts_of
from pipeline.datasets.sounds import (
    CLASSES,
    I16,
    SAMPLES,
    SILENCE,
    UNKNOWN,
    WORDS,
    check_word,
    padded,
    parse,
)
from pipeline.errors import ThimbleError

NOISE = "_background_noise_"
MOST_FILES_PER_WORD = 2**27 - 1
"""The data set's README: its hash function takes the remainder by one more."""
PARTS = ("train", "validation", "test")
SHARE = 10
"""One sound of silence, and one unknown word, for so many of words."""
SEED = 20180409


def part_of(name: str, validation_pct: float = 10, testing_pct: float = 10) -> str:
    """Return the part of the file ``name``: by the hash of what is before ``_nohash_``, the
    speaker, so that nobody is in two parts (the data set's README, ``which_set``)."""
    speaker = re.sub(r"_nohash_.*$", "", PurePosixPath(name).name)
    hashed = int(hashlib.sha1(speaker.encode(), usedforsecurity=False).hexdigest(), 16)
    percent = hashed % (MOST_FILES_PER_WORD + 1) * (100.0 / MOST_FILES_PER_WORD)
    if percent < validation_pct:
        return "validation"
    return "test" if percent < validation_pct + testing_pct else "train"


@dataclass(frozen=True)
class SpeechCommands(Dataset):
    """Speech Commands; its lists say which files are for validation and for testing, or, where
    they are missing, a hash of the speaker does.

    Attributes:
        path: the archive ``speech_commands_v0.02.tar.gz``, or 0.01, or the folder it unpacks to.
        validation: not used: the archive's own split counts.
    """

    path: str = ""

    def arrays(self) -> Arrays:
        words, noises, lists = self._files()
        if missing := [word for word in WORDS if word not in words]:
            raise ThimbleError(
                f"data.path={self.path} has no sounds of {', '.join(missing)}: it has to hold a "
                "folder for each of the ten words, as the official archive does"
            )
        if not noises:
            raise ThimbleError(
                f"data.path={self.path} has no {NOISE}/*.wav, which silence is cut out of"
            )
        for word in WORDS:
            check_word(word, [sound for _, sound in words[word]])
        return parts_of(*(self._part(part, words, noises, lists) for part in PARTS))

    def _part(
        self,
        part: str,
        words: dict[str, list[tuple[str, I16]]],
        noises: list[I16],
        lists: dict[str, set[str]],
    ) -> Split:
        def chosen(word: str) -> list[I16]:
            return [
                sound for name, sound in words[word] if _listed(f"{word}/{name}", lists) == part
            ]

        found = [(sound, CLASSES.index(word)) for word in WORDS for sound in chosen(word)]
        if not found:
            raise ThimbleError(f"data.path={self.path} has no sounds for {part}")
        others = [sound for word in sorted(set(words) - set(WORDS)) for sound in chosen(word)]
        random = np.random.default_rng((SEED, PARTS.index(part)))
        count = -(-len(found) // SHARE)
        order = random.permutation(len(others))[:count]
        found += [(others[index], CLASSES.index(UNKNOWN)) for index in sorted(order)]
        found += [(_cut(noises, random), CLASSES.index(SILENCE)) for _ in range(count)]
        order = random.permutation(len(found))
        samples = np.stack([padded(found[index][0]) for index in order])
        return Split(samples, np.array([found[index][1] for index in order], np.uint8))

    def _files(self) -> tuple[dict[str, list[tuple[str, I16]]], list[I16], dict[str, set[str]]]:
        """Sounds by word with their names, noises, and what the two lists say."""
        words: dict[str, list[tuple[str, I16]]] = {}
        noises: list[I16] = []
        lists: dict[str, set[str]] = {}
        for name, content in self._contents():
            folder, file = PurePosixPath(name).parent.name, PurePosixPath(name).name
            if file in ("validation_list.txt", "testing_list.txt"):
                part = "validation" if file.startswith("validation") else "test"
                lists[part] = set(content.decode(errors="replace").split())
            elif file.endswith(".wav") and folder == NOISE:
                noises.append(_long_enough(parse(content, name, most=None), name))
            elif file.endswith(".wav") and not folder.startswith((".", "_")):
                words.setdefault(folder, []).append((file, parse(content, name)))
        return {word: sorted(files, key=_name) for word, files in words.items()}, noises, lists

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        if not self.path:
            raise ThimbleError(
                "data=speech_commands needs data.path=FILE, the official archive "
                "speech_commands_v0.02.tar.gz, or the folder that it unpacks to"
            )
        place = Path(self.path).expanduser()
        if place.is_dir():
            for path in [*sorted(place.glob("*.txt")), *sorted(place.glob("*/*.wav"))]:
                yield str(path.relative_to(place)), regular(path, str(path)).read_bytes()
            return
        try:
            with tarfile.open(place) as archive:
                for member in archive:
                    stream = archive.extractfile(member) if member.isfile() else None
                    if stream is not None and member.name.endswith((".wav", "_list.txt")):
                        yield member.name.removeprefix("./"), stream.read()
        except (OSError, tarfile.TarError, EOFError, zlib.error) as error:
            said = str(error).splitlines()[0]
            raise ThimbleError(
                f"data.path={self.path} is no archive of Speech Commands ({said})"
            ) from None


def _name(file: tuple[str, I16]) -> str:
    return file[0]


def _listed(name: str, lists: dict[str, set[str]]) -> str:
    if set(lists) != {"validation", "test"}:
        return part_of(name)
    return next((part for part, names in lists.items() if name in names), "train")


def _long_enough(noise: I16, name: str) -> I16:
    if len(noise) < SAMPLES:
        raise ThimbleError(f"{name} has {len(noise):,} samples, a second of noise is needed")
    return noise


def _cut(noises: list[I16], random: np.random.Generator) -> I16:
    """Return a second of one of ``noises``, between silent and as loud as it is."""
    noise = noises[random.integers(len(noises))]
    start = random.integers(len(noise) - SAMPLES + 1)
    cut = noise[start : start + SAMPLES] * random.random()
    return np.asarray(np.rint(cut), np.int16)
