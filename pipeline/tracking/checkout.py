"""Which code a run ran: the commit that the project is at, and whether there are edits."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pipeline import home

COPIED = ("pipeline", "stages", "firmware")
"""What each run has a copy of."""

CODE = ("run.py", "dvc.yaml", "conf", *COPIED)


def code_version() -> dict[str, str]:
    """Tags of a run: ``code_version``, the commit, and ``code_dirty``, "true" after an edit or a
    new file in the code or the config. Empty where the project is no git checkout."""
    if not (home.ROOT / ".git").exists():
        return {}
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", *CODE)
    if commit is None or changes is None:
        return {}
    return {"code_version": commit.strip(), "code_dirty": "true" if changes else "false"}


def patch(folder: Path, commit: str) -> str:
    """How the code that the run in ``folder`` ran, its copy, differs from ``commit``: a patch for
    ``git apply``. The config is not in it: the run keeps it resolved."""
    git_dir = (_git("rev-parse", "--absolute-git-dir") or "").strip()
    with tempfile.TemporaryDirectory() as index:
        words = (f"--git-dir={git_dir}", f"--work-tree={folder.absolute()}")
        scratch = {**os.environ, "GIT_INDEX_FILE": f"{index}/index"}
        _git(*words, "read-tree", commit, env=scratch, cwd=folder)
        _git(*words, "add", "--intent-to-add", "--", *COPIED, env=scratch, cwd=folder)
        found = _git(*words, "diff", "--binary", commit, "--", *COPIED, env=scratch, cwd=folder)
    return found or ""


def _git(*words: str, env: Mapping[str, str] | None = None, cwd: Path = home.ROOT) -> str | None:
    """What git says; None without git, without a commit, or when it refuses another's folder."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *words],
            cwd=cwd, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
