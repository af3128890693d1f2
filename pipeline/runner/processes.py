"""The processes of stages. One may be started while the stage before it works: it imports its code
meanwhile, on another core, and waits for its turn (``stages/_main.py``).
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from pipeline import home
from pipeline.errors import ThimbleError
from pipeline.runner.code import Code, edited

TURN = "THIMBLE_TURN"
"""In a stage's environment: its turn comes with a line on standard input, which says what else its
environment has; without one it is not needed."""

KEPT = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:glibc.malloc.hugetlb=1"
"""Memory that is freed stays the process', in huge pages. By default the C library gives large
arrays back to the system and has them cleared again each time, a third to a half of a training."""


class Processes:
    """Runs the stages of the workspace ``folder`` by their ``commands``; they run ``code``."""

    def __init__(self, folder: Path, code: Code, commands: Mapping[str, str]) -> None:
        self._folder, self._code, self._commands = folder, code, commands
        self._abouts: dict[str, dict[str, Any]] = {}
        self._waiting: dict[str, subprocess.Popen[str]] = {}

    def start(self, stage: str) -> None:
        """Have ``stage`` wait for its turn, if it doesn't yet."""
        if stage in self._waiting:
            return
        self._abouts[stage] = self._code.about(stage)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, DEAF)
        try:
            self._waiting[stage] = subprocess.Popen(
                shlex.split(self._commands[stage]),
                cwd=self._folder,
                env={**environment(), TURN: "1"},
                stdin=subprocess.PIPE,
                text=True,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run(
        self,
        stage: str,
        about: Mapping[str, Any],
        more: Mapping[str, str],
        after: Callable[[], None],
    ) -> int:
        """Give ``stage`` its turn, with ``more`` in its environment; return its exit code.

        ``about`` says what code it is to run; ``after`` is called while it works.

        Raises:
            ThimbleError: its code was edited since.
        """
        if self._abouts.get(stage) != about and stage in self._waiting:
            _end(self._waiting.pop(stage))
        self.start(stage)
        process = self._waiting.pop(stage)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: its code is wrong
            process.stdin.write(json.dumps(dict(more)) + "\n")
            process.stdin.close()
        after()
        if code := process.wait():
            return code
        now = self._code.about(stage)
        if files := [*edited(about, self._abouts[stage]), *edited(about, now)]:
            raise ThimbleError(
                f"{stage}: {files[0]} was edited while it ran: nothing is kept, run it again"
            )
        return 0

    def end(self) -> None:
        """End those whose turn has not come."""
        for process in self._waiting.values():
            _end(process)
        self._waiting.clear()

    def kill(self) -> None:
        """End all that runs: politely, then not."""
        children = psutil.Process().children(recursive=True)
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.terminate()
        for child in psutil.wait_procs(children, timeout=5)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


DEAF = {signal.SIGINT}
"""A terminal sends Ctrl-C to all of a command's processes; stages, and what they start, leave it to
run.py, which ends them."""


def environment() -> dict[str, str]:
    """What a stage's process sees: this Python first in PATH, the project's code, no strays."""
    return {
        "GLIBC_TUNABLES": KEPT,
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(home.ROOT),
        "PYTHONSAFEPATH": "1",  # nothing of that name in the folder of a run
        "PYTHONHASHSEED": "0",
        "THIMBLE_HOME": str(home.home()),
        "THIMBLE_RUNNER": str(os.getpid()),
        "THIMBLE_TYPED": str(home.typed()),
    }


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
