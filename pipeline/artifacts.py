"""Files that stages exchange: byte-stable, and written whole or not at all.

NumPy, a tenth of a second, is imported by those who read or write arrays: run.py does not.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from pipeline.errors import ThimbleError

if TYPE_CHECKING:
    import numpy.typing as npt

Arrays: TypeAlias = "dict[str, npt.NDArray[Any]]"


def write_bytes(path: Path, content: bytes) -> None:
    """``content`` as ``path``, whole or not at all."""
    with whole(path) as stream:
        stream.write(content)


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file beside ``path``, renamed into place at the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: Path, content: str) -> None:
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """JSON with sorted keys, so that equal content is equal bytes."""
    write_text(path, json.dumps(content, sort_keys=True, indent=1) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise ThimbleError(f"{path} is missing: run the stage that writes it") from None
    except RecursionError:
        raise ThimbleError(f"{path} is damaged: it is nested without end") from None
    except ValueError as error:  # no JSON, no text, or a number of thousands of digits
        raise ThimbleError(
            f"{path} is damaged ({error}): delete it and run the same command again"
        ) from None


def regular(path: Path, what: str) -> Path:
    """``path``, where it is a file or nothing: reading from a pipe may never end."""
    if path.exists() and not path.is_file():
        kind = "folder" if path.is_dir() else "pipe or a device"
        raise ThimbleError(f"{what} is a {kind}: give a file")
    return path


def write_npz(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """An uncompressed ``.npz`` in key order; numpy dates its members 1980, so bytes are stable.

    What ``np.savez`` writes, which takes no arrays called ``file`` or ``allow_pickle``.
    """
    import numpy as np

    with whole(path) as stream, zipfile.ZipFile(stream, "w", allowZip64=True) as archive:
        for key in sorted(arrays):
            if "\0" in key:  # a zip file's name would end there
                raise ThimbleError(f"a tensor is called {key!r}: give it a name without a NUL")
            with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(arrays[key]), allow_pickle=False)


def read_npz(path: Path) -> Arrays:
    """All arrays of an ``.npz``; a damaged file (each member has a CRC) is one clear line."""
    import numpy as np

    with _opened(path) as stream, np.load(stream, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files}


def link_npz(source: Path, path: Path) -> None:
    """``path`` with the bytes of ``source``, an ``.npz``, which is looked at, but not copied where
    the file system can give one file two names."""
    with _opened(source) as stream, zipfile.ZipFile(stream) as archive:
        if archive.testzip():
            raise zipfile.BadZipFile("bad CRC-32")
    path.unlink(missing_ok=True)
    try:
        path.hardlink_to(source)
    except OSError:
        write_bytes(path, source.read_bytes())


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as stream:
            yield stream
    except FileNotFoundError:
        raise ThimbleError(f"{path} is missing: run the stage that writes it") from None
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, KeyError) as error:
        raise ThimbleError(
            f"{path} is damaged ({error}): delete it and run the same command again"
        ) from None
