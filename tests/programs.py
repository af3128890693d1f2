"""Programs that tests run, and stand-ins for those of others."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.artifacts import write_bytes
from pipeline.errors import ThimbleError


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


def refusal(call: Callable[[], object]) -> str:
    """Return what the user is told who asks for what ``call`` refuses."""
    with pytest.raises(ThimbleError) as caught:
        call()
    return str(caught.value)


def git(folder: Path, *words: str) -> str:
    """Run git in ``folder`` as somebody, and return what it prints."""
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    return said(["git", *identity, *words], folder).strip()


def written(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write ``files`` in ``folder``, which is made where it is missing, and give it back."""
    for name, content in files.items():
        write_bytes(folder / name, content.encode() if isinstance(content, str) else content)
    return folder


def program(folder: Path, name: str, script: str) -> Path:
    """Make an executable shell script, found first when ``folder`` leads PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
