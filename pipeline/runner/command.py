"""The command around Hydra: mistakes as one line, signals, exit codes, what is printed last."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from pipeline import home
from pipeline.runner import allowed, disk, launchers, messages, replay, results, schema, verbs
from pipeline.runner.clusters import Ray, Submitit
from pipeline.runner.halving import Architectures
from pipeline.runner.job import STOPPED
from pipeline.runner.launchers import Local, Serial
from pipeline.runner.progress import FOLDER
from pipeline.runner.quoted import quoted
from pipeline.runner.screen import fail, json_line
from pipeline.runner.sweep import finish
from pipeline.runner.sweeper import EveryCombination
from pipeline.runner.trials import Optuna
from pipeline.runner.versions import own

CLASSES = (EveryCombination, Architectures, Optuna, Serial, Local, Submitit, Ray)
PLUGINS = {each.__name__: each for each in CLASSES}
"""Plugins that conf/hydra names as ``hydra_plugins.thimble.NAME``."""


def run(main: Callable[[], Any]) -> int:
    """Call Hydra's ``main`` and return the exit code: 0, 1 failed, 3 does not fit, 130 Ctrl-C."""
    home.close_to_others()
    words = quoted(sys.argv[1:])
    if "--version" in words:
        print(f"Thimble {own()}")
        return 0
    sys.argv[1:] = sorted(words, key=lambda word: word not in ("-m", "--multirun"))
    trace = os.environ.get("HYDRA_FULL_ERROR") == "1"
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors arrive here and not on the screen
    os.environ["THIMBLE_TRACE"] = str(int(trace))
    os.environ.pop(FOLDER, None)
    signal.signal(signal.SIGTERM, _terminated)
    try:
        try:
            return _ended(_error(main, trace), "output=json" in words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # its reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:  # once more, while the end of the first was being written
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said: Python's own end is left


def _terminated(number: int, _: FrameType | None) -> None:
    """End as at Ctrl-C, but not a search alone."""
    raise KeyboardInterrupt(number)


def _error(main: Callable[[], Any], trace: bool) -> str:
    """Run ``main``; return the error that ended it, "" if none; with ``trace`` raise exceptions."""
    try:
        if (code := verbs.called(sys.argv[1:])) is not None:
            sys.exit(code)
        if sys.argv[1:2] == ["fits"]:
            from pipeline.runner import fits

            main = fits.main()
        sys.argv[1:1] = _beside()
        schema.register()
        launchers.register(PLUGINS)
        allowed.listen(sys.argv[1:])
        sys.argv[1:] = replay.arguments(sys.argv[1:])
        allowed.guard()
        main()
        return ""
    except KeyboardInterrupt:  # a sweep, or before a run has a folder
        return results.INTERRUPTED
    except SystemExit as ended:
        if not isinstance(ended.code, str):
            raise
        return ended.code  # the config was checked before the run began
    except Exception as caught:
        if trace or isinstance(caught, BrokenPipeError):
            raise
        system = disk.said(caught, _sweep()) if isinstance(caught, OSError) else ""
        return messages.explain(caught) or system or f"{type(caught).__name__}: {caught}"


def _ended(error: str, as_json: bool) -> int:
    """Say ``error``, and how the sweep ended if there is one."""
    if error:
        fail(STOPPED if error == results.INTERRUPTED else error)
    if folder := _sweep():
        return results.exit_code(finish(folder, error))
    if error and as_json:
        json_line({"status": "failed", "error": error})
    return results.exit_code({"status": "failed" if error else "ok", "error": error})


def _beside() -> list[str]:
    """The option that has Hydra search the folder ``conf`` of where the command is typed, too."""
    mine, given = Path("conf"), ("--config-dir", "-cd")
    if not mine.is_dir() or mine.resolve() == home.ROOT / "conf":
        return []
    return [] if any(word.startswith(given) for word in sys.argv[1:]) else ["--config-dir=conf"]


def _sweep() -> Path | None:
    return Path(name) if (name := os.environ.get(FOLDER)) else None
