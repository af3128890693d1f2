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
from pipeline.runner import bytecode

TURN = "THIMBLE_TURN"
"""In a stage's environment: its turn comes with a line on standard input, which says what else its
environment has; without one it is not needed."""


class Processes:
    """Of the stages of the workspace ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: dict[str, subprocess.Popen[str]] = {}
        self._starting, self._over = threading.Lock(), False

    def start(self, stage: Any) -> None:
        """Have ``stage`` wait for its turn. Raises ThimbleError after the ``end``."""
        from dvc.stage.run import _make_cmd, get_executable, prepare_kwargs

        bytecode.share(self._folder, [d.def_path for d in stage.deps if d.def_path.endswith(".py")])
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
        """
        from dvc.stage.exceptions import StageCmdFailedError

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

    def end(self) -> None:
        """End those whose turn has not come; none starts any more."""
        with self._starting:
            self._over = True
        for process in self._waiting.values():
            process.kill()
            process.communicate()
        self._waiting.clear()
