"""Tiny files in the real formats, and package managers that deliver them from a folder."""

import hashlib
import io
import struct
import tarfile
from pathlib import Path

import numpy as np

from pipeline.datasets.store import File, SourceError
from tests.programs import written

NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def idx(array: np.ndarray) -> bytes:
    """The IDX form of a u8 array."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def idx_set(train: int = 12, test: int = 5) -> dict[str, bytes]:
    """A whole MNIST-like set by file name: image i is filled with i, its label is i % 10."""

    def images(count: int, first: int) -> np.ndarray:
        values = np.arange(first, first + count, dtype=np.uint8)
        return np.broadcast_to(values[:, None, None], (count, 28, 28)).copy()

    def labels(count: int) -> np.ndarray:
        return (np.arange(count) % 10).astype(np.uint8)

    arrays = (images(train, 0), labels(train), images(test, 100), labels(test))
    return {name: idx(array) for name, array in zip(NAMES, arrays, strict=True)}


def pinned(contents: dict[str, bytes]) -> tuple[File, ...]:
    return tuple(File(n, hashlib.sha256(c).hexdigest()) for n, c in contents.items())


def archive(contents: dict[str, bytes]) -> bytes:
    """A packed tar of these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Given:
    """A source that has ``contents`` and counts how often it was asked."""

    def __init__(self, contents: dict[str, bytes], name: str = "given") -> None:
        self.contents, self.name, self.asked = contents, name, 0

    def __str__(self) -> str:
        return self.name

    def download(self, folder: Path, names: list[str]) -> None:
        self.asked += 1
        written(folder / "inner", self.contents)


class Failing:
    def __str__(self) -> str:
        return "the failing one"

    def download(self, folder: Path, names: list[str]) -> None:
        (folder / "half").write_bytes(b"left over")
        raise SourceError("no luck")
