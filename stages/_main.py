"""End every stage alike: done, a one-line error, or interrupted; and never let it outlive its run.

Run by run.py, a stage that fails leaves ``.stages/NAME.json`` in the workspace, which says why, and
its standard output goes to a log: standard output belongs to run.py's JSON line. In a sweep
standard error goes there, too: many jobs share the terminal.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from pipeline import config
from pipeline.artifacts import write_json
from pipeline.errors import UNSAID, ThimbleError, Unreadable, said

Config = dict[str, Any]
LOG = Path(".stages")
TURN = "THIMBLE_TURN"
"""In the environment: run.py may have started this before its turn (runner/processes.py)."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def stage(main: Callable[[Config], None]) -> Callable[[], None]:
    """Give ``main`` the run's config. Where its file is the program, run it at once: it is the last
    of its file."""

    def program() -> None:
        main(config.load())

    if main.__module__ == "__main__":
        run(program)
    return program


def run(main: Callable[[], None]) -> None:
    """Call ``main`` and leave the process: 0, 1 after an error, 130 after Ctrl-C."""
    name = Path(sys.argv[0]).stem
    if TURN in os.environ:  # the outputs of the stage before this one are not there yet
        if not (line := sys.stdin.readline()):
            os._exit(0)  # run.py has ended, or found this one's in its cache
        os.environ.update(json.loads(line))
    try:
        if runner := os.environ.get("THIMBLE_RUNNER"):
            threading.Thread(target=_end_with, args=(int(runner),), daemon=True).start()
            with (LOG / f"{name}.log").open("a") as log:  # of the processes that it starts, too
                for descriptor in (1, 2) if "THIMBLE_SWEEP" in os.environ else (1,):
                    os.dup2(log.fileno(), descriptor)
        main()
        sys.stdout.flush()  # to the log: a full disk is noticed here, and not while Python ends
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        _fail(name, error)


def _fail(name: str, error: Exception) -> NoReturn:
    """Say ``error`` in one line, to run.py or on standard error. What is no user's mistake has a
    trace in the log, and on standard error where Hydra is asked for it."""
    line, trace = f"{name}: {said(error)}", traceback.format_exc()
    if isinstance(error, ThimbleError):
        line, trace = str(error), ""
    elif isinstance(error, OSError) and error.errno in FULL:
        line = f"{name}: the disk is full ({error.strerror}): free some space and run it again"
    if os.environ.get("THIMBLE_TRACE") == "1":
        sys.stderr.write(trace)
    if not LOG.is_dir():
        sys.exit(line)
    try:
        unreadable = isinstance(error, Unreadable)
        write_json(LOG / f"{name}.json", {"error": line, "unreadable": unreadable})
        with (LOG / f"{name}.log").open("a") as log:
            log.write(trace)
    except OSError:  # run.py says that the disk is full; Python's end would say more
        os._exit(UNSAID)
    sys.exit(1)


def _end_with(runner: int) -> None:
    """End when run.py is gone, killed perhaps: nobody would keep the results."""
    try:
        while True:
            time.sleep(1)
            os.kill(runner, 0)
    except OSError:
        os._exit(1)
