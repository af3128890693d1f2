"""Copies of the project, as fresh clones are, in which DVC runs: this one stays as it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pipeline.home import ROOT
from tests.runner.project import clean_environment
from tests.stages.conftest import Project

FILES = ("run.py", "dvc.yaml", "params.yaml", ".dvcignore", ".gitignore")
FOLDERS = ("conf", "stages", "pipeline", "firmware", ".dvc")


def cloned(small: Project, folder: Path) -> Path:
    """Copy the project, with what ``small`` has in its cache."""
    clone = folder / "clone"
    clone.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, clone / name)
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "tmp", "cache", "config.local")
        shutil.copytree(ROOT / name, clone / name, ignore=ignored)
    for name in ("cache", "notes"):  # what tests that ran before have made
        kept = small.folder / "home" / name
        if kept.is_dir():
            shutil.copytree(kept, clone / ".thimble" / name)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], cwd=clone, check=True)
    for key, value in (("name", "a"), ("email", "a@b.c")):
        subprocess.run(["git", "config", f"user.{key}", value], cwd=clone, check=True)
    return clone


def dvc(clone: Path, *words: str) -> str:
    """What ``dvc`` says on standard output."""
    command = [sys.executable, "-m", "dvc", *words]
    done = subprocess.run(
        command, cwd=clone, env=clean(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def clean() -> dict[str, str]:
    """The environment of a user with this Python."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**clean_environment(), "PATH": path}
