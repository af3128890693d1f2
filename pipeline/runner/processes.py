"""The processes of stages. One may be started while the stage before it works: it imports its code
meanwhile, on another core, and waits for its turn (``stages/_main.py``).

Otherwise as DVC would run a stage's command: with its shell and its environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from pipeline.errors import ThimbleError
from pipeline.runner.code import Code, edited
from pipeline.tracking.checkout import FOLDER

TURN = "THIMBLE_TURN"
"""In a stage's environment: its turn comes with a line on standard input, which says what else its
environment has; without one it is not needed."""


class Processes:
    """Runs the stages of the workspace ``folder``, whose code is ``code``."""

    def __init__(self, folder: Path, code: Code) -> None:
        self._folder, self._code = folder, code
        self._texts: dict[str, str] = {}
        self._waiting: dict[str, subprocess.Popen[str]] = {}
        self._starting, self._over = threading.Lock(), False

    def start(self, stage: Any) -> None:
        """Have ``stage`` wait for its turn. Raises ThimbleError after the ``end``."""
        from dvc.stage.run import _make_cmd, get_executable, prepare_kwargs

        self._texts[stage.name] = self._code.text(stage.name)
        given = prepare_kwargs(stage, run_env={TURN: "1"})
        command = _make_cmd(get_executable(), stage.cmd)
        with self._starting:
            if self._over:
                raise ThimbleError("the run has ended")
            self._waiting[stage.name] = subprocess.Popen(
                command, stdin=subprocess.PIPE, text=True, **given
            )

    def run(self, stage: Any, then: Any = None) -> None:
        """Give ``stage`` its turn, ``start`` the one that is next, and wait for its end.

        Raises:
            StageCmdFailedError: DVC's, when it exits with anything but 0.
            ThimbleError: its code was edited since its file was written.
        """
        from dvc.stage.exceptions import StageCmdFailedError

        text = (self._folder / FOLDER / stage.name).read_text()
        if self._texts.get(stage.name) != text and stage.name in self._waiting:
            _end(self._waiting.pop(stage.name))
        if stage.name not in self._waiting:
            self.start(stage)
        process = self._waiting.pop(stage.name)
        more = {name: os.environ[name] for name in os.environ if name.startswith("THIMBLE_")}
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: its code is wrong
            process.stdin.write(json.dumps(more) + "\n")
            process.stdin.close()
        if then is not None and then.name not in self._waiting:
            self.start(then)
        if code := process.wait():
            raise StageCmdFailedError(stage.cmd, code)
        now = self._code.text(stage.name)
        if files := [*edited(text, self._texts[stage.name]), *edited(text, now)]:
            raise ThimbleError(
                f"{stage.name}: {files[0]} was edited while it ran: nothing is kept, run it again"
            )

    def end(self) -> None:
        """End those whose turn has not come; none starts any more."""
        with self._starting:
            self._over = True
        for process in self._waiting.values():
            _end(process)
        self._waiting.clear()


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()
