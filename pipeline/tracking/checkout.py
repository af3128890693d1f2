"""Which code a run ran: the commit that the project is at, and whether there are edits."""

from __future__ import annotations

import subprocess

from pipeline import home

CODE = ("run.py", "dvc.yaml", "conf", "pipeline", "stages", "firmware")


def code_version() -> dict[str, str]:
    """Tags of a run: ``code_version``, the commit, and ``code_dirty``, "true" after an edit or a
    new file in the code or the config. Empty where the project is no git checkout."""
    if not (home.ROOT / ".git").exists():
        return {}
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", *CODE)
    if commit is None or changes is None:
        return {}
    return {"code_version": commit, "code_dirty": "true" if changes else "false"}


def _git(*words: str) -> str | None:
    """What git says; None without git, without a commit, or when it refuses another's folder."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *words],
            cwd=home.ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
