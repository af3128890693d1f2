"""How every stage ends: done, a one-line error, or interrupted; and that it never outlives its run.

Run by run.py, a stage leaves ``.stages/NAME.json`` in the workspace, which says that it ran and why
it failed, and its standard output goes to a log: standard output belongs to run.py's JSON line. In
a sweep standard error goes there, too: many jobs share the terminal.
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

from pipeline.artifacts import write_json
from pipeline.errors import UNSAID, ThimbleError, Unreadable

LOG = Path(".stages")
TURN = "THIMBLE_TURN"
"""In the environment: run.py may have started this before its turn (runner/processes.py)."""


def run(main: Callable[[], None]) -> None:
    """Call ``main`` and leave the process: 0, 1 after an error, 130 after Ctrl-C."""
    name = Path(sys.argv[0]).stem
    if TURN in os.environ and not _turn_comes():
        os._exit(0)
    begin = time.monotonic()
    try:
        if runner := os.environ.get("THIMBLE_RUNNER"):
            threading.Thread(target=_end_with, args=(int(runner),), daemon=True).start()
            _to_log(LOG / f"{name}.log", (1, 2) if "THIMBLE_SWEEP" in os.environ else (1,))
        main()
        _done(name, time.monotonic() - begin)
    except KeyboardInterrupt:
        sys.exit(130)
    except ThimbleError as error:
        _fail(name, str(error), isinstance(error, Unreadable))
    except OSError as error:
        _trace(name)
        _fail(name, _system_error(name, error))
    except Exception as error:
        _trace(name)
        _fail(name, f"{name}: {type(error).__name__}: {str(error).partition(chr(10))[0]}")


def _turn_comes() -> bool:
    """Wait until the stage before this one is done: its outputs are not there yet. Whether run.py
    then says so; else it has ended, or found this one's in its cache."""
    if line := sys.stdin.readline():
        os.environ.update(json.loads(line))
    return bool(line)


def _done(name: str, seconds: float) -> None:
    if LOG.is_dir():
        sys.stdout.flush()  # to the log: a full disk is noticed here, and not while Python ends
        report = {"seconds": round(seconds, 3), "imported": imported()}
        write_json(LOG / f"{name}.json", report)


def imported() -> list[str]:
    """The project's files that were imported: what ``code/STAGE`` has to list."""
    here = f"{Path(__file__).resolve().parents[1]}/"
    files = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    return sorted({file.removeprefix(here) for file in files if file.startswith(here)})


def _system_error(name: str, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{name}: the disk is full ({error.strerror}): free some space and run it again"
    return f"{name}: {error}"


def _fail(name: str, message: str, unreadable: bool = False) -> None:
    if LOG.is_dir():
        try:
            write_json(LOG / f"{name}.json", {"error": message, "unreadable": unreadable})
        except OSError:  # run.py says that the disk is full; Python's end would say more
            os._exit(UNSAID)
    else:
        print(message, file=sys.stderr)
    sys.exit(1)


def _trace(name: str) -> None:
    """The trace, for developers: in the log, and on standard error when Hydra is asked for it."""
    if os.environ.get("THIMBLE_TRACE") == "1":
        traceback.print_exc()
    elif LOG.is_dir():
        try:
            with (LOG / f"{name}.log").open("a") as stream:
                traceback.print_exc(file=stream)
        except OSError:
            pass


def _to_log(path: Path, descriptors: tuple[int, ...]) -> None:
    """Send these file descriptors to ``path``, for this process and those it starts."""
    sys.stdout.flush()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor in descriptors:
        os.dup2(handle, descriptor)
    os.close(handle)


def _end_with(runner: int) -> None:
    """End when run.py is gone, killed perhaps: nobody would keep the results."""
    while True:
        time.sleep(1)
        try:
            os.kill(runner, 0)
        except ProcessLookupError:
            os._exit(1)
        except PermissionError:
            pass
