"""Programs that tests run, and stand-ins for those of others."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def ran(
    command: Sequence[str | Path], folder: Path | None = None, **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run ``command`` in ``folder``, however it ends."""
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **more)


def said(command: Sequence[str | Path], folder: Path | None = None, **more: Any) -> str:
    """Return what ``command`` prints, which ends well."""
    done = ran(command, folder, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[:3000]}"
    return done.stdout


def program(folder: Path, name: str, script: str) -> Path:
    """Make an executable shell script, found first when ``folder`` leads PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
