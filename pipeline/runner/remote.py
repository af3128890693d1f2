"""One cache for several machines: what a stage made goes to a DVC remote, and comes from there.

The layout is DVC's own, that of ``dvc push --run-cache``. But DVC transfers its whole run cache at
once; here it is one stage's note and outputs, when that stage is due. The note goes last: what it
names is there. Whatever comes from a remote is checked by hash like any cached file.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline import home
from pipeline.artifacts import write_bytes
from pipeline.errors import ThimbleError
from pipeline.runner import cached

NAME = "thimble"
"""What the remote is called in the runs' own DVC repositories."""

HASH = "md5-dos2unix"
"""DVC keeps its run cache in the object database of this name."""


class Remote:
    """The remote ``place``: a URL, a folder, or the name of one of the project's DVC remotes.

    When it fails, ``warn`` is called once, with one line, and the run goes on without.

    Raises:
        ThimbleError: for a name that is no remote; for one that can hold no run cache; and, when
            it is first used, if DVC lacks the package for its kind.
    """

    def __init__(self, place: str, warn: Callable[[str], None]) -> None:
        self.place = place
        self._settings = _settings(place)
        self._warn = warn
        self._works = True
        self._useless: set[str] = set()

    @property
    def config(self) -> dict[str, Any]:
        """What a run's DVC repository has to know. Kept in memory: it may hold a password."""
        return {"remote": {NAME: self._settings}, "core": {"remote": NAME}}

    def pull(self, stage: Any) -> bool:
        """Bring the stage's note and outputs to the local cache; False if the remote lacks them."""
        return self._forgiving(self._pull, stage)

    def push(self, stage: Any, again: bool = False) -> None:
        """Send what ``stage`` made, unless the remote has a result: all shall use the first.

        What cannot be used, or was found damaged, which is ``again``, is replaced.
        """
        self._forgiving(_push, stage, again or stage.name in self._useless)

    def _forgiving(self, act: Callable[..., bool], *args: Any) -> bool:
        """Call ``act``; False when the remote fails, now or earlier."""
        if not self._works:
            return False
        try:
            return act(*args)
        except ImportError as error:  # "s3 is supported, but requires 'dvc-s3' to be installed"
            raise ThimbleError(f"cache.remote={self.place}: {error}") from None
        except Exception as error:
            self._works = False
            logging.getLogger("dvc").exception("remote %s", self.place)
            said = (str(error) or type(error).__name__).splitlines()[0]
            self._warn(f"the shared cache {self.place} failed, going on without it: {said}")
            return False

    def _pull(self, stage: Any) -> bool:
        fs, folder = _folder(stage)
        for path in _files(fs, folder):
            content, key, name = fs.fs.cat_file(path), fs.name(folder), fs.name(path)
            note = cached.read_note(content, key, name)
            if note and _fetched(stage, note):
                write_bytes(Path(stage.repo.stage_cache._get_cache_path(key, name)), content)
                return True
            self._useless.add(stage.name)
        return False


def _fetched(stage: Any, note: Mapping[str, Any]) -> bool:
    """Whether all outputs that a remote's ``note`` names are in the local cache now."""
    from dvc.exceptions import CollectCacheError

    made = stage.repo.stage_cache._create_stage(note, wdir=stage.wdir)
    try:
        wanted = made.get_used_objs().values()
    except CollectCacheError:  # of a folder, the list of its files
        return False
    for ids in wanted:
        if failed := stage.repo.cloud.pull(ids).failed:  # missing ones do not count as failed
            raise OSError(f"{len(failed)} of {len(ids)} files did not arrive")
    return bool(made.outs_cached())


def _push(stage: Any, again: bool) -> bool:
    from dvc.stage.cache import _get_cache_hash
    from dvc.stage.serialize import to_single_stage_lockfile

    fs, folder = _folder(stage)
    there = _files(fs, folder)
    value = _get_cache_hash(to_single_stage_lockfile(stage))
    note = stage.repo.stage_cache._get_cache_path(fs.name(folder), value)
    if (there and not again) or not Path(note).is_file():
        return False
    outputs = stage.repo.cloud.get_remote_odb(NAME)
    for ids in stage.get_used_objs().values():
        if again:
            _remove(fs, [outputs.oid_to_path(item.value) for item in ids])
        if failed := stage.repo.cloud.push(ids).failed:
            raise OSError(f"{len(failed)} of {len(ids)} files were not taken")
    _remove(fs, there)
    fs.makedirs(folder)
    fs.put_file(note, fs.join(folder, value))
    return True


def _folder(stage: Any) -> tuple[Any, str]:
    """Where the remote keeps notes of results of this stage's command, inputs and parameters: the
    file system, and a folder named by DVC's hash of them."""
    from dvc.stage.cache import _get_stage_hash

    notes = stage.repo.cloud.get_remote_odb(NAME, hash_name=HASH)
    key = _get_stage_hash(stage)
    return notes.fs, notes.fs.join(notes.path, "runs", key[:2], key)


def _files(fs: Any, folder: str) -> list[str]:
    try:
        return sorted(fs.find(folder))
    except FileNotFoundError:
        return []


def _remove(fs: Any, paths: list[str]) -> None:
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            fs.remove(path)


def _settings(place: str) -> dict[str, Any]:
    """The section ``remote`` of DVC's config for ``place``."""
    from dvc.config import Config

    own: dict[str, dict[str, Any]] = Config(str(home.ROOT / ".dvc"))["remote"]
    if place in own:
        settings = dict(own[place])
    elif "://" in place:
        settings = {"url": place}
    elif place.startswith((".", "/", "~")):
        settings = {"url": str(home.typed() / Path(place).expanduser())}
    else:
        known = f"one of {', '.join(sorted(own))}, " if own else ""
        raise ThimbleError(
            f"cache.remote={place} is no DVC remote of this project: give {known}"
            f"a URL such as s3://bucket/folder, or a folder such as ./{place}"
        )
    if settings["url"].startswith("http"):
        raise ThimbleError(
            f"cache.remote={place}: DVC keeps no run cache on an http server, which cannot list "
            "its files; use a folder, ssh, webdav, s3, gs or azure"
        )
    return settings
