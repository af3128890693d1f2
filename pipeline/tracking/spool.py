"""The spool: one small file for each run that MLflow does not know yet."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

from pipeline import home
from pipeline.artifacts import write_json
from pipeline.tracking.entry import KILLED, Entry


def folder() -> Path:
    return home.home() / "tracking"


def begin(
    run: Path, title: str, tags: Mapping[str, str], sweep: str = "", parent: bool = False
) -> Entry:
    """Note that the run called ``title`` has begun: if its process is killed, that is what MLflow
    gets to know.

    ``end`` replaces the note, in steps that a kill cannot part: no run is lost or counted twice.
    """
    name = f"{time.time_ns()}-{socket.gethostname()}-{os.getpid()}"
    result = {"status": "failed", "run_dir": str(run), "error": KILLED}
    entry = Entry(name, str(run), result, sweep, parent, title, time.time(), tags=dict(tags))
    with contextlib.suppress(OSError):  # a full disk, a read-only cache: the stages say so
        write_json(_begun(entry), asdict(entry))
    return entry


def end(entry: Entry, result: Mapping[str, Any]) -> None:
    """Put ``entry`` into the spool with its ``result``."""
    write_json(_begun(entry), asdict(replace(entry, result=dict(result), end=time.time())))
    _spool(_begun(entry))


def forget(entry: Entry) -> None:
    """Take back that ``entry`` has begun: it was a mistake, and is no run."""
    _begun(entry).unlink(missing_ok=True)


def start_tracking(wait: bool = False) -> None:
    """Have the spool emptied by a process that outlives this one and holds none of its pipes.

    What cannot be started now, say for a full disk, is left to the next run.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with (folder() / "tracking.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", __package__],
                cwd=home.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "THIMBLE_HOME": str(home.home())},
            )
    except OSError as error:
        print(f"tracking: {error.strerror}: {error.filename}", file=sys.stderr)
        return
    if wait:
        process.wait()


def drain() -> None:
    """Log all that is spooled. An entry that fails stays for the next time; the log says why."""
    logging.basicConfig(format="%(asctime)s %(message)s")
    with FileLock(home.lock_file("tracking")):
        failed: set[Path] = set()
        _collect_killed()
        while waiting := sorted(set((folder() / "spool").glob("*.json")) - failed):
            from pipeline.tracking.store import Store

            store = Store(folder())
            for path in waiting:
                try:
                    store.log(Entry(**json.loads(path.read_text())))
                    path.unlink()
                except Exception:
                    logging.exception("could not track %s", path)
                    failed.add(path)


def _collect_killed() -> None:
    """Move what dead processes left to the spool; those of other machines are not ours to judge."""
    for path in (folder() / "begun").glob(f"*-{socket.gethostname()}-*.json"):
        noted, pid = int(path.stem.partition("-")[0]) / 1e9, int(path.stem.rpartition("-")[2])
        if not _lives(pid, noted):
            with contextlib.suppress(FileNotFoundError):  # it lived, and ended just now
                _spool(path)


def _lives(pid: int, since: float) -> bool:
    try:
        process = psutil.Process(pid)
        return bool(process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= since)
    except psutil.NoSuchProcess:
        return False


def _begun(entry: Entry) -> Path:
    return folder() / "begun" / f"{entry.name}.json"


def _spool(path: Path) -> None:
    (folder() / "spool").mkdir(exist_ok=True)
    path.replace(folder() / "spool" / path.name)
