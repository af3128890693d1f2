"""The stages of a run: restored from DVC's cache where they are in it, else run and kept there."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import itertools
import json
import logging
import operator
import shutil
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, Timeout

from pipeline import home
from pipeline.artifacts import write_json, write_text
from pipeline.errors import UNSAID, ThimbleError, Unreadable
from pipeline.runner import disk, garbage, store
from pipeline.runner.code import Code
from pipeline.runner.processes import Processes
from pipeline.runner.remote import NAME, Remote
from pipeline.runner.workspace import LOG
from pipeline.tracking.checkout import FILE as CODE

LOCK = "dvc.lock"

LONG = ("train", "prune")
"""Stages that may take hours."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a stage: ``cached`` if its results were there already, ``pulled`` if elsewhere."""

    stage: str
    seconds: float
    cached: bool
    pulled: bool = False


class Stages:
    """The stages of one workspace. A context manager: ``with Stages(folder, …) as stages``.

    A stage's key is a hash of all that its results depend on: its command, its parameters, its
    code and what the stages before it made. Under the key its results are noted (``store.py``).

    ``keep`` is where the workspace's cache is, ``remote`` another one that it shares, ``code`` what
    stages run, ``environment`` what in; those ``always`` run whose effect is outside: a board is
    written. ``early`` starts the next stage's process while one works.
    """

    def __init__(
        self,
        folder: Path,
        keep: Path,
        code: Code,
        environment: Mapping[str, str],
        always: Collection[str],
        early: bool,
        remote: Remote | None,
    ) -> None:
        self.folder, self.keep, self.code, self.remote = folder, keep, code, remote
        self.always, self.early, self._environment = always, early, environment
        self._store = store.Store(keep)
        self._stages = read_yaml(folder / "dvc.yaml")["stages"]
        self._params = read_yaml(folder / "params.yaml")
        self._processes = Processes(folder, code)
        self.began = False  # to run a stage
        self._ran: dict[str, dict[str, Any]] = {}
        self._made: dict[str, store.Entry] = {}

    def __enter__(self) -> Stages:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            for name in (signal.SIGINT, signal.SIGTERM):  # the next would disturb the end
                signal.signal(name, signal.SIG_IGN)
        self._processes.end(every=kind is not None)
        for log in (self.folder / LOG).glob("*.log"):
            if not log.stat().st_size:
                log.unlink()
        with contextlib.suppress(OSError):  # it has something
            (self.folder / LOG).rmdir()
        try:
            self._close()
        except OSError:
            if kind is None:  # else: a full disk, which the stage's error says
                raise

    def bring(self, names: Sequence[str], waiting: Callable[[], None]) -> list[Outcome]:
        """Bring the first of ``names`` up to date, and with it all that follow in the cache.

        ``waiting`` is called if another run is at the same stage.

        Raises:
            ThimbleError: the stage's own one-line message when it fails.
        """
        begin, name = time.monotonic(), names[0]
        try:
            outcomes = self._restored(names)
            if not outcomes:
                lock = FileLock(home.lock_file(f"{name}-{self._key(name)}"))
                try:
                    held = lock.acquire(timeout=0)
                except Timeout:
                    waiting()
                    held = lock.acquire()
                with held:
                    outcomes = self._restored([name])  # another run has made it meanwhile
                    if not outcomes:
                        self._make(name, *names[1:2])
                        outcomes = [Outcome(name, 0.0, cached=False)]
        except Exception as error:
            raise self._explained(name, error) from error
        took = (time.monotonic() - begin) / len(outcomes)
        return [replace(each, seconds=took) for each in outcomes]

    def _restored(self, names: Sequence[str]) -> list[Outcome]:
        """Restore the first of ``names``, as many as are in the cache or come from the remote."""
        outcomes, keys = list[Outcome](), list[str]()
        for name in itertools.takewhile(lambda name: name not in self.always, names):
            key = self._key(name)
            cached = self._store.find(key)
            entry = cached or (self._pulled(name, key) if self.remote else None)
            if entry is None or not self._fits(name, entry):
                break
            self._made[name] = entry
            outcomes.append(Outcome(name, 0.0, cached=True, pulled=cached is None))
            keys.append(key)
        found = [each.stage for each in outcomes]
        try:
            if found:
                self._write_lock()
                with self._dvc() as repo:
                    repo.checkout(found, force=True)
        except Exception:
            sound = [self._store.sound(self._made.pop(name)) for name in found]
            if all(sound):
                raise
            return []  # another run has found that something is damaged, and removed it
        for each, key in zip(outcomes, keys, strict=True):
            if not each.pulled:
                self._share(each.stage, key)
        return outcomes

    def _share(self, name: str, key: str) -> None:
        """Send what a stage made to the remote."""
        if self.remote and name not in self.always:
            entry = self._made[name]
            oids = [oid for _, oid in self._store.files(entry)]
            with self._dvc() as repo:
                self.remote.push(repo, name, key, entry, oids)

    def _pulled(self, name: str, key: str) -> store.Entry | None:
        """Bring what the remote has of a stage to the cache; None unless it is whole."""
        assert self.remote
        with self._dvc() as repo:
            entry = self.remote.noted(repo, key)
            if entry and self._fits(name, entry):
                self._made[name] = entry
                self._write_lock()
                with contextlib.suppress(Exception):  # DVC says in many ways what is missing
                    repo.fetch([name], remote=NAME)
                del self._made[name]
                if self._store.sound(entry):
                    self._store.keep(key, entry)
                    return entry
        return None

    def _fits(self, name: str, entry: store.Entry) -> bool:
        """Check that ``entry`` names the stage's outputs: it says what is written where."""
        return sorted(out["path"] for out in entry["outs"]) == sorted(self._stages[name]["outs"])

    def _make(self, name: str, then: str = "") -> None:
        """Run the stage's command, keep what it makes, and note it. Meanwhile open DVC, and start
        the process of the stage ``then``, unless memory would be taken for hours."""
        key, stage = self._key(name), self._stages[name]
        checkpoints = self.keep / "checkpoints" / f"{name}-{key}"
        outs = [self.folder / out for out in stage["outs"]]
        once = self.folder / LOG / f"{name}.once"  # the stage leaves it after a search cut short
        for out in (*outs, once):
            store.remove(out)
        self.began = True
        more = {"THIMBLE_CHECKPOINTS": str(checkpoints)}
        with self._processes.running(name, stage["cmd"], self._ran[name], more):
            if self.early and then and name not in LONG:
                self._processes.start(then, self._stages[then]["cmd"])
            with self._dvc():
                pass
        for out in outs:
            if not out.exists():
                raise ThimbleError(f"{name} did not write {out.relative_to(self.folder)}")
            self._store.make_way(out)
        entry = self._committed(name)
        if not self._store.sound(entry):  # a damaged list of a folder's files was in its place
            entry = self._committed(name)
        self._made[name] = entry
        if once.exists():
            once.unlink()
            return
        self._store.keep(key, entry)
        if self.remote:
            self._write_lock()
            self._share(name, key)
        shutil.rmtree(checkpoints, ignore_errors=True)

    def _committed(self, name: str) -> store.Entry:
        """Have DVC take the stage's outputs into its cache; return its entry of dvc.lock, which
        holds no other meanwhile: DVC reads and writes all of it, slowly."""
        (self.folder / LOCK).unlink(missing_ok=True)
        write_json(self.folder / CODE, self._ran)
        with self._dvc() as repo:
            try:
                repo.commit(name, force=True)
            except OSError:
                raise
            except Exception:  # damaged notes of DVC's own, by which ``dvc repro`` finds results
                store.remove(self.keep / "cache" / "runs")
                repo.commit(name, force=True)
        entry: store.Entry = read_yaml(self.folder / LOCK)["stages"][name]
        return entry

    def _key(self, name: str) -> str:
        """Look at what code the stage runs; return the stage's key."""
        self._ran[name] = self.code.about(name)
        stage = self._stages[name]
        made = {out["path"]: out["md5"] for each in self._made.values() for out in each["outs"]}
        deps = {dep: made.get(dep) or store.md5(self.folder / dep) for dep in stage.get("deps", ())}
        params = [
            _value(self._params, key) if isinstance(key, str) else self._ran[name]["hash"]
            for key in stage["params"]
        ]
        about = [stage["cmd"], deps, params, sorted(stage["outs"])]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:32]

    @contextlib.contextmanager
    def _dvc(self) -> Iterator[Any]:
        """DVC, in its folder, which it takes paths to be relative to."""
        with contextlib.chdir(self.folder):
            yield self._repo

    @cached_property
    def _repo(self) -> Any:
        """DVC, whose import takes a while."""
        from dvc.repo import Repo

        for name in ("dvc", "dvc_data", "dvc_objects"):  # no messages, no progress bars
            logging.getLogger(name).setLevel(logging.CRITICAL)
        repo = Repo(str(self.folder), config=self.remote.config if self.remote else None)
        garbage.collect()
        return repo

    def _explained(self, name: str, error: Exception) -> ThimbleError:
        """Return an error that says what failed, in the stage's own words if it had any."""
        if isinstance(error, ChildProcessError):
            with contextlib.suppress(OSError, ValueError, KeyError):
                told = json.loads((self.folder / LOG / f"{name}.json").read_text())
                return (Unreadable if told.get("unreadable") else ThimbleError)(told["error"])
            (code,) = error.args
            if code == UNSAID:
                error = OSError(errno.ENOSPC, "")
            elif (number := -code if code < 0 else code - 128) > 0:
                return ThimbleError(f"{name} was killed by signal {number}: run it again")
            else:
                return ThimbleError(f"{name}: ended with {code}; log in {self.folder / LOG}")
        if isinstance(error, ThimbleError):
            return error
        causes = list(disk.causes(error))
        for cause in causes:
            if str(cause).endswith("disk is full"):  # SQLite
                cause = OSError(errno.ENOSPC, "")
            if isinstance(cause, OSError):
                return ThimbleError(f"{name}: {disk.said(cause, self.folder)}")
        return ThimbleError(f"{name}: {str(causes[-1]).splitlines()[0]}")

    def _write_lock(self) -> None:
        """Write dvc.lock, in JSON, which is YAML: DVC's own way is slow."""
        content = {"schema": "2.0", "stages": self._made}
        write_text(self.folder / LOCK, json.dumps(content, indent=1) + "\n")

    def _close(self) -> None:
        if self._made:
            self._write_lock()
            origin: dict[str, Any] = {"environment": self._environment}
            for name, entry in self._made.items():
                files = {k: v for k, v in self._store.files(entry) if not v.endswith(store.LIST)}
                origin[name] = {**self._ran[name], "made": files}
            write_json(self.folder / CODE, origin)
        if "_repo" in self.__dict__:
            self._repo.close()
        for name in ("site", "tmp"):
            shutil.rmtree(self.folder / ".dvc" / name, ignore_errors=True)


def _value(content: Mapping[str, Any], key: str) -> Any:
    """``content``'s value of a dotted key."""
    try:
        return functools.reduce(operator.getitem, key.split("."), content)
    except (KeyError, TypeError):
        raise ThimbleError(f"params.yaml has no {key}, which a stage of dvc.yaml reads") from None


def read_yaml(path: Path) -> Any:
    return yaml.load(path.read_text(), yaml.CSafeLoader)
