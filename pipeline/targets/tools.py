"""Programs that are not ours: found or named, run with their errors told in one line."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pipeline.errors import ThimbleError


def require(program: str, package: str, purpose: str) -> str:
    """The path of ``program``; raises ThimbleError naming the Debian ``package`` that has it."""
    found = shutil.which(program)
    if found is None:
        raise ThimbleError(
            f"{program} is not installed ({purpose}): sudo apt-get install {package}"
        )
    return found


def run(command: Sequence[str], folder: Path, doing: str) -> str:
    """Return the standard output of ``command`` run in ``folder``.

    Raises:
        ThimbleError: when it fails, with the most telling line of its standard error.
    """
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        said = telling(done.stderr)
        raise ThimbleError(f"{doing} failed: {Path(command[0]).name}: {said}")
    return done.stdout


def telling(text: str) -> str:
    """The first line that says "error" (of itself, not that a step before failed), or the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if not line.startswith("collect2:")] or lines or ["no message"]
    return next((line for line in own if "error" in line.lower()), own[-1])
