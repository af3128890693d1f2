"""A local store of hash-verified files, filled from the first source that has them.

A file is in the store under its own name only after its SHA-256 was checked: sources write into a
temporary folder, and a verified file is renamed into place. A file that was cut off or damaged
later fails the same check and is fetched again.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pooch  # type: ignore[import-untyped]
from filelock import FileLock

from pipeline.errors import ThimbleError

TEMPORARY = ".fetch-"
MOST_BYTES = 1 << 30
"""Most bytes of one file, unpacked: the largest known file has a twentieth of that."""
PIECE_BYTES = 1 << 20


class SourceError(Exception):
    """Why one source could not deliver; the next one is tried."""


@dataclass(frozen=True)
class File:
    """A file by name and the SHA-256 of its uncompressed content."""

    name: str
    sha256: str


def listed(text: str) -> tuple[File, ...]:
    """Return the files that ``text`` lists, as ``sha256sum`` prints them."""
    return tuple(File(*reversed(line.split())) for line in text.strip().splitlines())


class Source(Protocol):
    def __str__(self) -> str:
        """Return the source's name in error messages."""

    def download(self, folder: Path, names: Sequence[str]) -> None:
        """Put the named files, plain or as ``.gz``, anywhere below ``folder``.

        Raises:
            SourceError: with a short reason.
        """


def home() -> Path:
    """Return the folder of fetched sets: ``THIMBLE_DATA`` or the user's cache folder."""
    return Path(os.environ.get("THIMBLE_DATA") or pooch.os_cache("thimble"))


def is_good(path: Path, sha256: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == sha256


def ensure(name: str, files: Sequence[File], sources: Sequence[Source]) -> Path:
    """Return the folder of set ``name`` with every file present and verified.

    Processes that ask at once wait for the first to fetch. A full store need not be writable.

    Raises:
        ThimbleError: no source had the files; the message names all of them and why.
    """
    folder = home() / name
    if all(is_good(folder / file.name, file.sha256) for file in files):
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock"):
            return _filled(name, folder, files, sources)
    except OSError as error:
        raise ThimbleError(
            f"cannot keep {name} in {folder} ({error.strerror}): set THIMBLE_DATA to a folder "
            "with room that can be written"
        ) from None


def _filled(name: str, folder: Path, files: Sequence[File], sources: Sequence[Source]) -> Path:
    def missing() -> list[File]:
        return [file for file in files if not is_good(folder / file.name, file.sha256)]

    for left in folder.glob(f"{TEMPORARY}*"):
        shutil.rmtree(left, ignore_errors=True)  # of a process that was killed
    wanted, reasons = missing(), []
    for source in sources:
        if not wanted:
            break
        with tempfile.TemporaryDirectory(dir=folder, prefix=TEMPORARY) as place:
            try:
                source.download(Path(place), [file.name for file in wanted])
                problems = [_collect(Path(place), file, folder) for file in wanted]
                reasons += [f"{source} ({problem})" for problem in problems if problem][:1]
            except SourceError as error:
                reasons.append(f"{source} ({error})")
        wanted = missing()
    if not wanted:
        return folder
    names = ", ".join(file.name for file in wanted)
    raise ThimbleError(
        f"cannot get {name}: tried {'; '.join(reasons)}; put {names} into a folder and pass "
        "data.path=FOLDER"
    )


def _collect(place: Path, file: File, folder: Path) -> str:
    """Find one file below ``place``, unpack it, check it, and rename it into ``folder``.

    Returns what is wrong, or an empty string.
    """
    complaint = f"no {file.name} in it"
    for path in sorted(place.rglob("*")):
        if path.name not in (file.name, f"{file.name}.gz") or not path.is_file():
            continue
        plain = place / f".plain-{file.name}"
        unpack = gzip.open if path.suffix == ".gz" else open
        try:
            with unpack(path, "rb") as source, plain.open("wb") as target:
                while piece := source.read(PIECE_BYTES):
                    if target.tell() + len(piece) > MOST_BYTES:
                        return f"{path.name} unpacks to more than {MOST_BYTES / 1e9:.1f} GB"
                    target.write(piece)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            complaint = f"{path.name} is cut off or damaged"
            continue
        if is_good(plain, file.sha256):
            plain.replace(folder / file.name)
            return ""
        complaint = f"{path.name} has another SHA-256"
    return complaint
