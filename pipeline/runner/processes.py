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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from pipeline import home
from pipeline.anytime import ENOUGH, RUNNING
from pipeline.errors import ThimbleError
from pipeline.runner.code import Code, edited

TURN = "THIMBLE_TURN"
"""Variable in a stage's environment: its turn comes with a line on standard input, which says what
else its environment has; without one it is not needed."""

KEPT = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:glibc.malloc.hugetlb=1"
"""Memory that is freed stays the process', in huge pages. By default the C library gives large
arrays back to the system and has them cleared again each time, a third to a half of a training."""


class Processes:
    """The processes of stages in the workspace ``folder``, which run ``code``."""

    def __init__(self, folder: Path, code: Code) -> None:
        self._folder, self._code = folder, code
        self._waiting: dict[str, tuple[subprocess.Popen[str], dict[str, Any]]] = {}

    def start(self, stage: str, command: str) -> None:
        """Have ``stage`` wait for its turn."""
        about = self._code.about(stage)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, DEAF)
        try:
            words, env = shlex.split(command), {**environment(), TURN: "1"}
            process = subprocess.Popen(
                words, cwd=self._folder, env=env, stdin=subprocess.PIPE, text=True
            )
            self._waiting[stage] = process, about
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @contextlib.contextmanager
    def running(
        self, stage: str, command: str, about: Mapping[str, Any], more: Mapping[str, str]
    ) -> Iterator[None]:
        """Give ``stage`` its turn, with ``more`` in its environment, and wait for its end.

        ``about`` says what code it is to run.

        Raises:
            ChildProcessError: its exit code, unless that is 0.
            ThimbleError: its code was edited since.
        """
        if stage in self._waiting and self._waiting[stage][1] != about:
            _end(self._waiting.pop(stage)[0])
        if stage not in self._waiting:
            self.start(stage, command)
        process, began = self._waiting.pop(stage)
        (self._folder / RUNNING).unlink(missing_ok=True)  # of one that was killed
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: its code is wrong
            process.stdin.write(json.dumps(dict(more)) + "\n")
            process.stdin.close()
        try:
            yield
            code = process.wait()
        except KeyboardInterrupt as interrupt:
            if interrupt.args or not (self._folder / RUNNING).exists():
                raise
            process.send_signal(ENOUGH)  # a search takes the best so far; the next Ctrl-C ends it
            code = process.wait()
        if code:
            raise ChildProcessError(code)
        if files := [*edited(about, began), *edited(about, self._code.about(stage))]:
            raise ThimbleError(
                f"{stage}: {files[0]} was edited while it ran: nothing is kept, run it again"
            )

    def end(self, every: bool) -> None:
        """End those whose turn has not come, or ``every`` one that runs: politely, then not."""
        for process, _ in self._waiting.values():
            _end(process)
        self._waiting.clear()
        children = psutil.Process().children(recursive=True) if every else []
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
    """Return a stage's environment: this Python first in PATH, the project's code, no strays."""
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
