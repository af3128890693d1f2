"""One stage at a time through DVC, in this process, under a lock named by the stage's key."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock, Timeout

from pipeline import home
from pipeline.artifacts import write_json, write_text
from pipeline.errors import UNSAID, ThimbleError, Unreadable
from pipeline.runner import cached, disk, garbage, repository
from pipeline.runner.closure import remember
from pipeline.runner.code import Code
from pipeline.runner.inputs import Inputs
from pipeline.runner.processes import Processes
from pipeline.runner.remote import Remote
from pipeline.runner.workspace import LOG

HASHES = "hashes.json"
"""In a run's folder: of each stage, the MD5 of each file that it made."""


LONG = ("train", "prune")
"""Stages that may take hours."""

DEAF = home.ROOT / "pipeline/runner/deaf.sh"

KEPT = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:glibc.malloc.hugetlb=1"
"""Memory that is freed stays the process', in huge pages. By default the C library gives large
arrays back to the system and has them cleared again each time, a third to a half of a training."""


@dataclass(frozen=True)
class Outcome:
    """How a stage went: ``cached`` when its results were there already, ``pulled`` if elsewhere."""

    stage: str
    seconds: float
    cached: bool
    pulled: bool = False


class Stages:
    """The stages of one workspace. A context manager: ``with Stages(folder) as stages``.

    DVC runs in a thread of its own. In the main thread it would ignore Ctrl-C while a stage runs;
    here the main thread waits, ends the stage's process when interrupted, and says so.

    ``keep`` is where the workspace's cache is, ``remote`` another one that it shares, ``code`` what
    the stages run.
    """

    def __init__(self, folder: Path, keep: Path, code: Code, remote: Remote | None = None) -> None:
        self.folder, self.keep, self.code, self.remote = folder, keep, code, remote
        self._pulled: set[str] = set()
        self._thread = ThreadPoolExecutor(1, "dvc")
        self._repo: Any = None
        self._done: list[Any] = []
        self._inputs = Inputs()
        self._processes = Processes(folder, code)
        self._then, self._over = "", threading.Event()

    def __enter__(self) -> Stages:
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(_environment())
        self._stack.enter_context(contextlib.chdir(self.folder))
        self._stack.enter_context(_log_to(self.folder / LOG / "dvc.log"))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt and threading.current_thread() is threading.main_thread():
            for name in (signal.SIGINT, signal.SIGTERM):  # the next would disturb the end
                signal.signal(name, signal.SIG_IGN)
        with self._stack:
            self._over.set()
            self._processes.end()
            if kind:  # nothing starts any more; DVC's thread waits for the end of what runs
                _end_children()
            try:
                self._thread.submit(self._close).result()
            except OSError:
                if kind is None:  # else: a full disk, which the stage's error says
                    raise
            self._thread.shutdown()

    def run(
        self,
        stage: str,
        waiting: Callable[[], None] = lambda: None,
        always: bool = False,
        then: str = "",
    ) -> Outcome:
        """Bring ``stage`` up to date; ``waiting`` is called if another run is at the same stage.

        ``always`` runs it whatever the cache has: what it does outside counts, a board is written.
        ``then`` is what comes after it, so that it can be made ready.
        Raises ThimbleError with the stage's own one-line message when it fails.
        """
        begin = time.monotonic()
        self._then = then
        _wait(self._thread.submit(self._run, stage, waiting, always))
        ran = (self.folder / LOG / f"{stage}.json").exists()
        pulled = stage in self._pulled and not ran  # else: what came was damaged
        return Outcome(stage, time.monotonic() - begin, not ran, pulled)

    def _run(self, name: str, waiting: Callable[[], None], always: bool) -> None:
        from dvc.repo import lock_repo

        try:
            if self._repo is None:
                config = self.remote.config if self.remote else None
                self._repo = repository.opened(self.folder, config)
                self._loaded = repository.stages(self._repo)
                garbage.collect()
            stage = self._loaded[name]
            self.code.write(self.folder, name)
            with lock_repo(self._repo):
                self._inputs.settle(stage)
                key = _key(stage)
                with _locked(f"{name}-{key}", waiting, self._over.is_set):
                    checkpoints = self.keep / "checkpoints" / f"{name}-{key}"
                    os.environ["THIMBLE_CHECKPOINTS"] = str(checkpoints)
                    self._reproduce(stage, always)
                    if damaged := cached.damaged(stage):
                        for path in damaged:
                            cached.remove(path)
                        logging.getLogger("dvc").warning("damaged, made again: %s", damaged)
                        self._reproduce(stage, pull=False)
                    if self.remote and not always:
                        self.remote.push(stage, again=bool(damaged))
                    shutil.rmtree(checkpoints, ignore_errors=True)
        except Exception as error:
            raise self._explained(name, error) from error

    def _reproduce(self, stage: Any, always: bool = False, pull: bool = True) -> None:
        """What ``dvc repro --single-item`` does; dvc.yaml is read and dvc.lock written only once.

        ``_restored`` is a short cut for a stage in the run cache.
        """
        note = cached.note(stage)  # always: what is damaged there is removed
        restored = not always and self._restored(stage, note)
        if not restored and not always and pull and self.remote and self.remote.pull(stage):
            restored = self._restored(stage, cached.note(stage))
            self._pulled |= {stage.name} if restored else set()
        if not restored:
            self._make(stage)
            cached.refill(stage)
        if stage not in self._done:
            self._done.append(stage)

    def _make(self, stage: Any) -> None:
        """Run the stage's command, keep what it makes, and note it.

        DVC's ``reproduce`` takes locks on every dependency as well, in a file of JSON, and looks
        for changes: the workspace is this run's alone, and what it asks is known here.
        """
        from dvc.stage.decorators import unlocked_repo

        stage.remove_outs()
        unlocked_repo(self._processes.run)(stage, self._meanwhile(stage))
        stage.save(run_cache=False)
        cached.keep(stage)
        stage.commit()

    def _meanwhile(self, stage: Any) -> Any:
        """The stage whose process starts while ``stage`` works; None in a sweep, whose jobs keep
        all cores at work, and where it would take memory for hours."""
        alone = "THIMBLE_SWEEP" not in os.environ and stage.name not in LONG
        return self._loaded.get(self._then) if alone else None

    def _restored(self, stage: Any, entry: Any) -> bool:
        from dvc.stage.loader import StageLoader

        if not entry:
            return False
        StageLoader.fill_from_lock(stage, entry)
        cached.mend(stage)
        if not stage.outs_cached():
            return False
        stage.checkout(force=True)
        return True

    def _explained(self, name: str, error: Exception) -> ThimbleError:
        """What failed, in the stage's own words if it had any."""
        report = self.folder / LOG / f"{name}.json"
        with contextlib.suppress(OSError, ValueError, KeyError):
            told = json.loads(report.read_text())
            return (Unreadable if told.get("unreadable") else ThimbleError)(told["error"])
        if isinstance(error, ThimbleError):
            return error
        causes = list(disk.causes(error))
        for cause in causes:
            if isinstance(cause, OSError):
                return ThimbleError(f"{name}: {disk.said(cause, self.folder)}")
            if str(cause).endswith((f"exited with {UNSAID}", "disk is full")):  # a stage; SQLite
                full = OSError(errno.ENOSPC, "")
                return ThimbleError(f"{name}: {disk.said(full, self.folder)}")
        for cause in causes:
            if number := _signal(str(cause)):
                return ThimbleError(f"{name} was killed by signal {number}: run it again")
        said = str(causes[-1]).splitlines()[0]
        return ThimbleError(f"{name}: {said}; log in {self.folder / LOG}")

    def _close(self) -> None:
        remember()
        if self._repo is not None:
            if self._done:
                _write_lock(self.folder / "dvc.lock", self._done)
                write_json(
                    self.folder / HASHES, {stage.name: cached.hashes(stage) for stage in self._done}
                )
            self._repo.close()


def _write_lock(path: Path, stages: list[Any]) -> None:
    """dvc.lock of ``stages``, as DVC has it."""
    from dvc.stage.serialize import to_single_stage_lockfile

    made = {stage.name: to_single_stage_lockfile(stage) for stage in stages}
    write_text(path, cached.to_yaml({"schema": "2.0", "stages": made}))


def _key(stage: Any) -> str:
    """A hash of all that the stage's results depend on: equal keys, equal results."""
    parts = [str(stage.cmd)]
    parts += [json.dumps(dep.dumpd(), sort_keys=True, default=str) for dep in stage.deps]
    parts += sorted(out.def_path for out in stage.outs)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _signal(said: str) -> int:
    """The signal that ended a stage, from DVC's ``exited with CODE``; 0 for none."""
    found = re.search(r"exited with (-?\d+)$", said)
    code = int(found[1]) if found else 0
    return -code if code < 0 else max(0, code - 128)


@contextlib.contextmanager
def _locked(name: str, waiting: Callable[[], None], over: Callable[[], bool]) -> Iterator[None]:
    """Raises Timeout when it is ``over`` before the lock is free."""
    lock = FileLock(home.lock_file(name))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        waiting()
        while not lock.is_locked:
            if over():
                raise
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=1)
    try:
        yield
    finally:
        lock.release()


def _wait(future: Future[None]) -> None:
    """Wait in steps: a plain wait cannot be interrupted by a signal on every platform."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    while not done.wait(0.5):
        pass
    future.result()


def _end_children() -> None:
    """End the stage's processes: politely, then not."""
    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.terminate()
    for child in psutil.wait_procs(children, timeout=5)[1]:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """Set what stage processes see: this Python first in PATH, the project's code, no strays."""
    before = dict(os.environ)
    os.environ.setdefault("GLIBC_TUNABLES", KEPT)
    os.environ.update(
        PATH=os.pathsep.join([str(Path(sys.executable).parent), before.get("PATH", "")]),
        PYTHONPATH=str(home.ROOT),
        PYTHONSAFEPATH="1",  # nothing of that name in the folder of a run
        PYTHONHASHSEED="0",
        SHELL=str(DEAF) if os.access(DEAF, os.X_OK) else "/bin/sh",  # unpacked without modes
        THIMBLE_HOME=str(home.home()),
        THIMBLE_RUNNER=str(os.getpid()),
        THIMBLE_TYPED=str(home.typed()),
    )
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """DVC's messages go to a file; a terminal gets ours."""
    import dvc.log  # noqa: F401  its import sets handlers up

    loggers = [logging.getLogger(name) for name in ("dvc", "dvc_data", "dvc_objects")]
    before = [(logger.handlers, logger.level, logger.propagate) for logger in loggers]
    reports = logging.raiseExceptions
    logging.raiseExceptions = False  # else a full disk is a trace on the screen
    handler = logging.FileHandler(path, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            handler.close()
        logging.raiseExceptions = reports
        for logger, state in zip(loggers, before, strict=True):
            logger.handlers, logger.level, logger.propagate = state
