"""What DVC's cache has of a stage, read with suspicion: disks fail, copies are cut, files come from
other machines. What is not what its name says counts as absent and is removed.

A note (DVC's run cache) says what a stage made of which inputs. It lies in a folder named by the
hash of the stage's command, inputs and parameters, and is itself named by the hash of its content.
The files themselves, and the lists of a folder's files, are named by their MD5.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from pipeline.artifacts import write_text

OID = re.compile(r"[0-9a-f]{32}(\.dir)?")
"""What DVC calls a file in its cache, and a folder's list: it becomes a path."""


def note(stage: Any) -> Mapping[str, Any] | None:
    """DVC's note of the stage's results, the newest one; None if there is none.

    DVC trips over an empty folder and over what it cannot read, so what a kill, a full disk or a
    bad one left is removed. The caller holds the lock of the stage's key, and has hashed its deps.
    """
    from dvc.stage.cache import _get_stage_hash

    key = _get_stage_hash(stage)
    folder = Path(stage.repo.stage_cache._get_cache_dir(key))
    if not folder.is_dir():
        folder.unlink(missing_ok=True)
        return None
    found = None
    for path in sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime):
        entry = None if path.is_dir() else read_note(path.read_bytes(), key, path.name)
        found = entry or found
        if entry is None:
            remove(path)
    if found is None:
        folder.rmdir()
    return found


def read_note(content: bytes, key: str, name: str) -> Mapping[str, Any] | None:
    """The note ``content`` if it is one called ``name`` in the folder ``key``, else None."""
    from dvc.utils.serialize import parse_yaml

    fast = partial(yaml.load, Loader=yaml.CSafeLoader)
    # YAML 1.2, which DVC writes, has other words and numbers
    ways: list[Callable[[str], Any]] = [json.loads, fast, partial(parse_yaml, path=name)]
    return next(filter(None, (_entry(way, content, key, name) for way in ways)), None)


def _entry(
    parse: Callable[[str], Any], content: bytes, key: str, name: str
) -> Mapping[str, Any] | None:
    from dvc.schema import COMPILED_LOCK_FILE_STAGE_SCHEMA
    from dvc.stage.cache import _get_cache_hash

    try:
        entry: dict[str, Any] = COMPILED_LOCK_FILE_STAGE_SCHEMA(parse(content.decode()))
        if _get_cache_hash(entry) != name or _get_cache_hash(dict(entry), key=True) != key:
            return None
        return entry if all(OID.fullmatch(str(out["md5"])) for out in entry["outs"]) else None
    except Exception:  # YAML raises all kinds for random bytes, even RecursionError
        return None


def keep(stage: Any) -> None:
    """Write DVC's note of what ``stage`` has just made, whose files are still to be kept."""
    from dvc.stage.cache import _get_cache_hash, _get_stage_hash
    from dvc.stage.serialize import to_single_stage_lockfile

    entry = to_single_stage_lockfile(stage)
    notes = stage.repo.stage_cache
    path = Path(notes._get_cache_path(_get_stage_hash(stage), _get_cache_hash(entry)))
    if not path.is_file():
        write_text(path, to_yaml(entry))


def to_yaml(content: Mapping[str, Any]) -> str:
    """For DVC to read, as JSON, which is YAML: DVC's own way takes 0.1 s for each stage, and as
    much to read it."""
    return json.dumps(content, indent=1) + "\n"


def mend(stage: Any) -> None:
    """Remove from the cache what DVC would trip over or never replace: folders where files of the
    stage's outputs should be, and damaged lists of a folder's files."""
    for out in stage.outs:
        oid = out.hash_info.value
        if not oid:
            continue
        place = Path(out.cache.oid_to_path(oid))
        files = _listed(place, oid) if out.hash_info.isdir else [oid]
        if files is None:
            remove(place)
        for each in files or ():
            if (path := Path(out.cache.oid_to_path(each))).is_dir():
                remove(path)


def damaged(stage: Any) -> list[Path]:
    """Files of a stage's outputs, and of the cache, whose bytes are not what DVC recorded.

    DVC trusts a read-only file in its cache. A bad disk and a stray ``chmod`` don't ask.
    """
    wrong: list[Path] = []
    for out in stage.outs:
        for path, oid in _files(out):
            if not path.is_file() or md5(path) != oid:
                wrong += [path, Path(out.cache.oid_to_path(oid))]
    return wrong


def refill(stage: Any) -> None:
    """Put what ``stage`` has just made in the place of damaged files of that name in the cache:
    DVC keeps what is there."""
    for out in stage.outs:
        if out.hash_info.isdir:
            place = Path(out.cache.oid_to_path(out.hash_info.value))
            if _listed(place, out.hash_info.value) is None:
                remove(place)
                tree = out.get_obj()
                out.cache.add(tree.path, tree.fs, tree.oid)
        for path, oid in _files(out):
            place = Path(out.cache.oid_to_path(oid))
            if not place.is_file() or not (path.samefile(place) or md5(place) == oid):
                remove(place)
                out.cache.add(str(path), out.fs, oid)


def hashes(stage: Any) -> dict[str, str]:
    """The MD5 of each file that ``stage`` made."""
    files = ((Path(out.fs_path), Path(out.def_path), out) for out in stage.outs)
    return {
        (name / path.relative_to(place)).as_posix(): oid
        for place, name, out in files
        for path, oid in _files(out)
    }


def md5(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; neither has to be there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _listed(place: Path, oid: str) -> list[str] | None:
    """The names of a folder's files in the cache, from their list at ``place``; None if that is
    missing or damaged, or would put a file outside of the folder."""
    if not place.is_file() or md5(place) != oid.removesuffix(".dir"):
        return None
    try:
        files = [(str(item["md5"]), str(item["relpath"])) for item in json.loads(place.read_text())]
    except (ValueError, KeyError, TypeError):
        return None
    inside = all(
        OID.fullmatch(name) and not path.startswith("/") and ".." not in PurePosixPath(path).parts
        for name, path in files
    )
    return [name for name, _ in files] if inside else None


def _files(out: Any) -> Iterator[tuple[Path, str]]:
    """(path, md5) of each file of a DVC output, a folder's one by one."""
    path = Path(out.fs_path)
    if out.hash_info.isdir:
        for parts, (_, info) in out.get_obj().iteritems():
            yield path.joinpath(*parts), info.value
    elif out.hash_info.value:
        yield path, out.hash_info.value
