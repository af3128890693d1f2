"""Trainings that are compared, and one that is killed with SIGKILL once it has written so many
checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from pipeline.artifacts import Arrays, read_npz

KILLER = """
import os, signal, threading, time
from pathlib import Path

def end():
    while len(list(Path({folder!r}).glob("*.ckpt"))) < {files}:
        time.sleep(0.005)
    os.kill(os.getpid(), signal.SIGKILL)

threading.Thread(target=end, daemon=True).start()
"""
"""In the process itself: from outside, on a loaded machine, the kill could come after its end."""
PROGRAM = """
from pathlib import Path
from pipeline.artifacts import write_npz
from pipeline.training.environment import Run
from {module} import DATA, LONG, MODEL
trained = LONG.train(MODEL, DATA, Run.from_environment(1, 2))
write_npz(Path({out!r}), trained.weights)
"""


def equal(a: Arrays, b: Arrays) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


def resumed(folder: Path, module: str, files: int, first: str) -> Arrays:
    """The weights of ``LONG`` of a test's ``module``, trained by a process that is killed once
    ``files`` are there, and by another, which must not say ``first``: it goes on where that was."""
    checkpoints, out = folder / "checkpoints", folder / "weights.npz"
    environment = os.environ | {"THIMBLE_CHECKPOINTS": str(checkpoints)}
    killer = KILLER.format(folder=str(checkpoints), files=files)
    program = PROGRAM.format(module=module, out=str(out))
    for source, end in ((killer + program, -signal.SIGKILL), (program, 0)):
        assert not out.exists()
        done = subprocess.run(
            [sys.executable, "-c", source], env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == end, done.stderr
    assert first not in done.stderr
    return read_npz(out)
