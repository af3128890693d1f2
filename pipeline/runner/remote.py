"""One cache for several machines: what a stage made goes to a DVC remote, and comes from there.

Files lie there as ``dvc push`` puts them. The note of a stage, by which others find them, lies
beside them in the folder ``notes``, and goes last: what it names is there. Whatever comes from a
remote is checked by hash like any cached file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pipeline import home
from pipeline.errors import ThimbleError
from pipeline.runner import store

NAME = "thimble"
"""Name of the remote in the runs' own DVC repositories."""


class Remote:
    """The remote ``place``: a URL, a folder, or the name of one of the project's DVC remotes.

    When it fails, ``warn`` is called once, with one line, and the run goes on without.

    Raises:
        ThimbleError: for a name that is no remote; for one that cannot be written to; and, when it
            is first used, if DVC lacks the package for its kind.
    """

    def __init__(self, place: str, warn: Callable[[str], None]) -> None:
        self.place, self._warn = place, warn
        self.config = {"remote": {NAME: _settings(place)}}
        """Settings that a run's DVC repository needs. Kept in memory: they may hold a password."""
        self._works = True
        self._seen: set[str] = set()

    def noted(self, repo: Any, key: str) -> store.Entry | None:
        """Return what is noted there under ``key``; None if nothing is, or the remote fails."""
        with self._forgiving(repo, key) as (files, note):
            if files and files.fs.exists(note):
                self._seen.add(key)
                return store.read(files.fs.fs.cat_file(note), key)
        return None

    def push(self, repo: Any, stage: str, key: str, entry: store.Entry, oids: list[str]) -> None:
        """Send the files ``oids`` that ``stage`` made, by its ``entry`` in dvc.lock, unless the
        remote has a result: all shall use the first. One that was of no use is replaced."""
        with self._forgiving(repo, key) as (files, note):
            if files and key in self._seen:
                for path in (note, *(files.oid_to_path(oid) for oid in oids)):
                    with contextlib.suppress(FileNotFoundError):
                        files.fs.remove(path)
            if files and not files.fs.exists(note):
                repo.push([stage], remote=NAME)
                files.fs.makedirs(files.fs.parent(note))
                files.fs.fs.pipe_file(note, store.written(key, entry))
                self._seen.discard(key)

    @contextlib.contextmanager
    def _forgiving(self, repo: Any, key: str) -> Iterator[tuple[Any, str]]:
        """DVC's files in the remote, and beside them the path of the note of ``key``. Ends quietly
        when the remote fails; the first time with a warning, and then there are no files."""
        try:
            files, note = None, ""
            if self._works:
                files = repo.cloud.get_remote_odb(NAME)
                fs = files.fs
                note = fs.join(fs.parent(fs.parent(files.path)), "notes", key[:2], key)
            yield files, note
        except ImportError as error:  # "s3 is supported, but requires 'dvc-s3' to be installed"
            raise ThimbleError(f"cache.remote={self.place}: {error}") from None
        except Exception as error:
            self._works = False
            said = (str(error) or type(error).__name__).splitlines()[0]
            self._warn(f"the shared cache {self.place} failed, going on without it: {said}")


def _settings(place: str) -> dict[str, Any]:
    """Return the section ``remote`` of DVC's config for ``place``."""
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
            f"cache.remote={place}: notes of results are kept on no http server; "
            "use a folder, ssh, webdav, s3, gs or azure"
        )
    return settings
