"""Array files that a user gives: sizes before contents.

What a file claims to hold is checked before any of it is read or allocated: a few kilobytes of zip
may claim terabytes, and an honest file may be larger than the memory.
"""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import psutil

from pipeline.artifacts import Arrays, regular
from pipeline.errors import ThimbleError

MOST_BYTES = 1 << 32
"""Most bytes of all arrays that are taken from one file, and of a whole set of images."""
MOST_MEMBERS = 10_000
LONGEST_REASON = 200
"""Characters: of what a damaged file's bytes are quoted."""
COPIES = 2
"""Copies that are held at once while arrays are taken apart."""

BROKEN = (
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError, SyntaxError, ValueError, KeyError),
    *(EOFError, OSError, RuntimeError, MemoryError),
)
"""Exceptions that damaged and hostile files make zipfile and numpy raise."""

READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


@dataclass(frozen=True)
class Header:
    """Shape and type of an array, as its file says in front of it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


def headers(path: Path, key: str, names: Collection[str] = ()) -> dict[str, Header]:
    """Read headers of the arrays ``names`` in an ``.npz``, or of all; those it lacks are left out.

    Args:
        key: of the config, that the user named the file by.

    Raises:
        ThimbleError: no such file, none that holds plain arrays, one that claims other sizes than
            it has, or more than can be read.
    """
    found = {}
    with _reading(path, key), zipfile.ZipFile(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if len(members) > MOST_MEMBERS:
            raise ThimbleError(
                f"{key}={path} holds {len(members):,} arrays, {MOST_MEMBERS:,} are possible: save "
                "only those that are needed"
            )
        for name, info in members.items():
            if names and name not in names:
                continue
            with archive.open(info) as stream:
                found[name] = _header(stream, info.file_size, f"{name} in {key}={path}")
    check(sum(header.bytes for header in found.values()), f"{key}={path}", ", ".join(found))
    return found


def read(path: Path, key: str) -> Arrays:
    """Return all arrays of an ``.npz``. Raises ThimbleError as ``headers`` does."""
    return {name: array(path, key, name) for name in headers(path, key)}


def array(path: Path, key: str, name: str) -> np.ndarray[Any, Any]:
    """Return one array of an ``.npz`` whose headers were checked."""
    with _reading(path, key), np.load(path, allow_pickle=False) as archive:
        result: np.ndarray[Any, Any] = archive[name]
        return result


def npy(path: Path) -> np.ndarray[Any, Any]:
    """Return the array in an ``.npy``, mapped: nothing of it is read yet.

    Raises:
        ThimbleError: it holds no plain array, or fewer elements than it claims.
    """
    with _reading(path):
        result = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(result, np.ndarray):
            return result
        result.close()
        raise ThimbleError(f"{path} is a zip, as np.savez makes them: save each array by np.save")


def _header(stream: IO[bytes], there: int, what: str) -> Header:
    """``there``: bytes of the member, its header included."""
    version = np.lib.format.read_magic(stream)
    if version not in READERS:
        raise ThimbleError(f"{what} has version {version} of the .npy format: save a plain array")
    shape, _, dtype = READERS[version](stream)
    if dtype.hasobject:
        raise ThimbleError(
            f"{what} holds Python objects, which may run code and are not read: save an array of "
            "numbers, all images of one size"
        )
    header = Header(shape, dtype)
    if min(shape, default=0) < 0 or header.bytes != there - stream.tell():
        raise ThimbleError(
            f"{what} claims {header.bytes:,} B, as {dtype} of {'x'.join(map(str, shape))}, and has "
            f"{there - stream.tell():,}: it is damaged, save it again"
        )
    return header


def check(needed: int, what: str, names: str) -> None:
    """Raises ThimbleError where ``needed`` bytes of ``names`` in the file ``what`` are too many."""
    if needed > MOST_BYTES:
        raise ThimbleError(
            f"{what} holds {names}, {needed / 1e9:,.1f} GB where {MOST_BYTES / 1e9:.1f} GB are "
            "possible: use fewer or smaller images (data.shape), and uint8 instead of floats"
        )
    if COPIES * needed > (available := psutil.virtual_memory().available):
        raise ThimbleError(
            f"{what} takes {COPIES * needed / 1e9:,.1f} GB of memory to read ({names}), "
            f"{available / 1e9:.1f} GB are available: use fewer or smaller images, or free some"
        )


@contextmanager
def _reading(path: Path, key: str = "") -> Iterator[None]:
    what = f"{key}={path}" if key else str(path)
    regular(path, what)
    try:
        yield
    except FileNotFoundError:
        raise ThimbleError(f"{what} does not exist") from None
    except BROKEN as error:
        said = str(error).partition("\n")[0][:LONGEST_REASON]
        raise ThimbleError(
            f"{what} is damaged, or holds no plain arrays ({said}): save it again, with np.savez "
            "or np.save"
        ) from None
