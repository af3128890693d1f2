"""The command around Hydra: mistakes as one line, signals, exit codes, what is printed last."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from pipeline import home
from pipeline.runner import (
    allowed,
    clusters,
    disk,
    launchers,
    messages,
    replay,
    results,
    schema,
    sweep,
    verbs,
    versions,
)
from pipeline.runner.halving import Architectures
from pipeline.runner.job import STOPPED
from pipeline.runner.progress import FOLDER
from pipeline.runner.quoted import quoted
from pipeline.runner.screen import fail, json_line
from pipeline.runner.sweeper import EveryCombination
from pipeline.runner.trials import Optuna

PLUGINS = {
    "EveryCombination": EveryCombination,
    "Architectures": Architectures,
    "Optuna": Optuna,
    "Serial": launchers.Serial,
    "Local": launchers.Local,
    "Submitit": clusters.Submitit,
    "Ray": clusters.Ray,
}
"""What conf/hydra names as ``hydra_plugins.thimble.NAME``."""


def run(main: Callable[[], Any]) -> int:
    """Call Hydra's ``main`` and return the exit code: 0, 1 failed, 3 does not fit, 130 Ctrl-C."""
    home.close_to_others()
    if "--version" in sys.argv[1:]:
        print(f"Thimble {versions.own()}")
        return 0
    sys.argv[1:] = sorted(quoted(sys.argv[1:]), key=lambda word: word not in ("-m", "--multirun"))
    as_json = "output=json" in sys.argv[1:]
    trace = os.environ.get("HYDRA_FULL_ERROR") == "1"
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors arrive here and not on the screen
    os.environ["THIMBLE_TRACE"] = str(int(trace))
    os.environ.pop(FOLDER, None)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return _run(main, as_json, trace)
    except KeyboardInterrupt:  # once more, while the end of the first was being written
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said: Python's own end is left


def _run(main: Callable[[], Any], as_json: bool, trace: bool) -> int:
    error = ""
    try:
        if verbs.spoken(sys.argv[1:]):
            return verbs.run(sys.argv[1:])
        sys.argv[1:1] = _beside()
        schema.register()
        launchers.register(PLUGINS)
        allowed.listen(sys.argv[1:])
        sys.argv[1:] = replay.arguments(sys.argv[1:])
        allowed.guard()
        main()
    except KeyboardInterrupt:  # a sweep, or before a run has a folder
        fail(STOPPED)
        error = results.INTERRUPTED
        if as_json and not _sweep():
            json_line({"status": "failed", "error": error})
    except SystemExit as ended:
        if not isinstance(ended.code, str):
            raise
        return _failed(ended.code, as_json)  # the config was checked before the run began
    except Exception as caught:
        if trace:
            raise
        error = messages.explain(caught) or _unexpected(caught)
        if not _sweep():
            return _failed(error, as_json)
        print(error, file=sys.stderr)
    if folder := _sweep():
        return results.exit_code(sweep.finish(folder, error))
    return 130 if error else 0


def _beside() -> list[str]:
    """The option that has Hydra search the folder ``conf`` of where the command is typed, too."""
    own, given = Path("conf"), ("--config-dir", "-cd")
    if not own.is_dir() or own.resolve() == home.ROOT / "conf":
        return []
    return [] if any(word.startswith(given) for word in sys.argv[1:]) else ["--config-dir=conf"]


def _failed(error: str, as_json: bool) -> int:
    """The exit code of what ended before a run had a folder; ``error`` is said."""
    fail(error)
    if as_json:
        json_line({"status": "failed", "error": error})
    return results.EXIT["failed"]


def _unexpected(error: Exception) -> str:
    """An error of the system, before a run has a folder; or a bug."""
    if isinstance(error, OSError):
        return disk.said(error, _sweep())
    return f"{type(error).__name__}: {error}"


def _sweep() -> Path | None:
    return Path(name) if (name := os.environ.get(FOLDER)) else None


def _terminated(*_: object) -> NoReturn:
    raise KeyboardInterrupt
