"""Note in a file what each job of a sweep is doing: its process may be on another machine.

A job writes ``JOBS/NUMBER.json`` in the sweep's folder as it goes, and its ``result.json`` at the
end; the process that started the sweep reads them. A launcher that loses a job's process notes it
in the same place, so that nothing a job has said gets lost with it.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.artifacts import write_json
from pipeline.runner.screen import Screen

FOLDER = "THIMBLE_SWEEP"
"""The environment variable that names the sweep's folder to its jobs' processes."""

JOBS = ".jobs"
KILLED = "its process was killed"


class Notes(Screen):
    """Stand-in for a Screen in a job of a sweep: many jobs share the terminal."""

    def __init__(self, sweep: Path, number: int, folder: Path) -> None:
        super().__init__(as_json=False)
        self.console.quiet = True  # the sweep's view and table show the rest
        self._path = sweep / JOBS / f"{number}.json"
        self._note = {"folder": str(folder), "begin": time.time()}
        (folder / "result.json").unlink(missing_ok=True)  # of an earlier sweep in this folder
        self.start("starting")

    def start(self, stage: str) -> None:
        with contextlib.suppress(OSError):  # a full disk: the job itself will say so
            write_json(self._path, {**self._note, "stage": stage})

    def waiting(self, stage: str) -> None:
        self.start(f"{stage}, waiting for another job")


def read(sweep: Path, without: Mapping[int, Any] | None = None) -> dict[int, dict[str, Any]]:
    """The notes of the jobs of ``sweep`` that have started, by number; not those in ``without``."""
    found = {}
    for path in (sweep / JOBS).glob("[0-9]*.json"):
        if int(path.stem) not in (without or {}):
            with contextlib.suppress(OSError, ValueError):
                found[int(path.stem)] = json.loads(path.read_text())
    return found


def lost(sweep: Path, number: int, error: str) -> None:
    """Note that job ``number`` ended with ``error`` and could not say so itself."""
    path = sweep / JOBS / f"{number}.json"
    note = {"folder": str(sweep / str(number)), "begin": time.time(), "stage": ""}
    with contextlib.suppress(OSError, ValueError):
        note |= json.loads(path.read_text())
    write_json(path, {**note, "error": error})


def result(note: Mapping[str, Any], why: str = "") -> dict[str, Any] | None:
    """Return the result of the job that wrote ``note``; of one that left none, that it failed, by
    what the launcher noted or for ``why``; None while it runs."""
    noted = {"error": note["error"]} if note.get("error") else {}
    with contextlib.suppress(OSError, ValueError):
        return {**noted, **json.loads((Path(note["folder"]) / "result.json").read_text())}
    error = noted.get("error", why)
    return {"status": "failed", "run_dir": note["folder"], "error": error} if error else None
