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
    """The standard output of ``command`` run in ``folder``.

    Raises:
        ThimbleError: when it fails, with its first line that says "error", else its last line.
    """
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        said = next((line for line in lines if "error" in line.lower()), lines[-1])
        raise ThimbleError(f"{doing} failed: {Path(command[0]).name}: {said.strip()}")
    return done.stdout
