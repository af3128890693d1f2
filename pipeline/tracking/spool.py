"""The spool: one small file for each run that MLflow does not know yet."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock

from pipeline import home
from pipeline.artifacts import write_json
from pipeline.tracking.entry import Entry


def folder() -> Path:
    return home.home() / "tracking"


def add_job(run: Path, result: Mapping[str, Any], sweep: str, tags: Mapping[str, str]) -> None:
    took = sum(stage["seconds"] for stage in result.get("stages", {}).values())
    begin = time.time() - took
    _add(Entry(_name(), str(run), dict(result), sweep, begin=begin, tags=dict(tags)))


def add_sweep(run: Path, result: Mapping[str, Any], begin: float, tags: Mapping[str, str]) -> None:
    _add(Entry(_name(), str(run), dict(result), parent=True, begin=begin, tags=dict(tags)))


def start_tracking(wait: bool = False) -> None:
    """Have the spool emptied by a process that outlives this one and holds none of its pipes.

    What cannot be started now, say for a full disk, is left to the next run.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with (folder() / "tracking.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", __package__],
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


def _add(entry: Entry) -> None:
    write_json(folder() / "spool" / f"{entry.name}.json", asdict(entry))


def _name() -> str:
    return f"{time.time_ns()}-{os.getpid()}"
