"""Keep what stages made of which inputs: notes of it, and files in DVC's cache that they name.

DVC takes half a second for each stage that it finds in its run cache; from notes it restores all
stages of a run by one ``dvc checkout``. A note is the stage's entry of dvc.lock, under its key.
Notes and files are read with suspicion: disks fail, copies are cut, files come from other machines.
What is not what its name says counts as absent and is removed.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pipeline.artifacts import write_bytes

OID = re.compile(r"[0-9a-f]{32}(\.dir)?")
"""Pattern of DVC's names of files in its cache and of folders' lists: they become paths."""

LIST = ".dir"

Entry = Mapping[str, Any]
"""Entry of a stage in dvc.lock: cmd, deps, params, outs."""


class Store:
    """The notes and DVC's cache in the folder ``keep``."""

    def __init__(self, keep: Path) -> None:
        self._notes = keep / "notes"
        self._files = keep / "cache" / "files" / "md5"

    def find(self, key: str) -> Entry | None:
        """Return the entry noted under ``key`` if all its files are in the cache; else None."""
        note = self._notes / key[:2] / key
        entry = read(note.read_bytes(), key) if note.is_file() else None
        if entry is None and note.exists():
            remove(note)
        return entry if entry and self.sound(entry) else None

    def keep(self, key: str, entry: Entry) -> None:
        """Note ``entry`` under ``key``."""
        note = self._notes / key[:2] / key
        if note.parent.is_file():
            remove(note.parent)
        write_bytes(note, written(key, entry))

    def sound(self, entry: Entry) -> bool:
        """Check that all files of ``entry`` are in the cache; remove what is damaged there."""
        wrong = [oid for _, oid in self.files(entry) if not self._intact(oid)]
        for oid in wrong:
            remove(self._place(oid))
        return not wrong

    def make_way(self, made: Path) -> None:
        """Remove from the cache what lies there, damaged, in the place of the file ``made``, or of
        files below it: DVC keeps what is there."""
        for path in (made, *made.rglob("*")):
            if path.is_file() and not self._intact(oid := md5(path)):
                remove(self._place(oid))

    def files(self, entry: Entry) -> Iterator[tuple[str, str]]:
        """Yield each file of ``entry`` and its name in the cache; a folder too, which is the list
        of its files there."""
        for out in entry["outs"]:
            yield out["path"], out["md5"]
            files = listed(self._place(out["md5"])) if out["md5"].endswith(LIST) else {}
            for name, oid in (files or {}).items():
                yield f"{out['path']}/{name}", oid

    def _intact(self, oid: str) -> bool:
        place = self._place(oid)
        same = place.is_file() and md5(place) == oid.removesuffix(LIST)
        return same and (not oid.endswith(LIST) or listed(place) is not None)

    def _place(self, oid: str) -> Path:
        """Return the path at which DVC keeps a file."""
        return self._files / oid[:2] / oid[2:]


def written(key: str, entry: Entry) -> bytes:
    """Return the content of the note of ``entry`` under ``key``."""
    text = json.dumps(entry, sort_keys=True)
    return f"{_sum(key, text)} {text}\n".encode()


def read(content: bytes, key: str) -> Entry | None:
    """Return the entry of the note ``content`` under ``key``; None for what is none."""
    try:
        found, _, text = content.decode().partition(" ")
        entry: Entry = json.loads(text) if found == _sum(key, text.removesuffix("\n")) else {}
        good = all(OID.fullmatch(out["md5"]) and out["path"] for out in entry["outs"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return entry if good else None


def _sum(key: str, text: str) -> str:
    return hashlib.sha256(f"{key} {text}".encode()).hexdigest()


def listed(place: Path) -> dict[str, str] | None:
    """Return the files of a folder, name → MD5, by their list at ``place`` in the cache; None if it
    is damaged, or would put a file outside of the folder."""
    try:
        files = {str(item["relpath"]): str(item["md5"]) for item in json.loads(place.read_text())}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    inside = all(
        OID.fullmatch(oid) and not name.startswith("/") and ".." not in PurePosixPath(name).parts
        for name, oid in files.items()
    )
    return files if inside else None


def md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; neither has to be there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
