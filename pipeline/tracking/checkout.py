"""Record the code that a run ran: the commit that the project is at, and if there are edits."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline import home
from pipeline.artifacts import read_json

FILE = "code.json"
"""In a run's folder: what each stage ran (runner/code.py) and made, and the run's surroundings."""

PATCH = "code.patch"
"""In a run's folder, if the code was edited since its commit."""

RUN = ("pipeline", "stages", "firmware")
"""Folders of the code that stages run."""

CODE = ("run.py", "dvc.yaml", "conf", *RUN)


def code_version() -> dict[str, str]:
    """Tags of a run: ``code_version``, the commit, and ``code_dirty``, "true" after an edit or a
    new file in the code or the config. Empty where the project is no git checkout."""
    if not (home.ROOT / ".git").exists():
        return {}
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain", "--", *CODE)
    if commit is None or changes is None:
        return {}
    return {"code_version": commit.strip(), "code_dirty": "true" if changes else "false"}


def patch(commit: str) -> str:
    """Return a patch for ``git apply`` from ``commit`` to the code that stages run. The config is
    not in it: the run keeps it resolved."""
    with tempfile.TemporaryDirectory() as index:
        scratch = {**os.environ, "GIT_INDEX_FILE": f"{index}/index"}
        _git("read-tree", commit, env=scratch)
        _git("add", "--intent-to-add", "--", *RUN, env=scratch)
        return _git("diff", "--binary", commit, "--", *RUN, env=scratch) or ""


def recorded(folder: Path) -> dict[str, dict[str, Any]]:
    """Return ``files``, ``own`` and ``versions`` of all stages that the run in ``folder`` went
    through, what each ``made``, and the run's ``environment``."""
    path = folder / FILE  # a sweep's has none
    stages = read_json(path) if path.is_file() else {}
    found: dict[str, dict[str, Any]] = {"files": {}, "own": {}, "versions": {}}
    environment = stages.pop("environment", {})
    for about in stages.values():
        for kind in found:
            found[kind] |= about.get(kind, {})
    made = {name: about["made"] for name, about in stages.items() if "made" in about}
    return {**found, "made": made, "environment": environment}


def _git(*words: str, env: Mapping[str, str] | None = None) -> str | None:
    """Return git's output; None without git or a commit, or when it refuses another's folder."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *words],
            cwd=home.ROOT, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None
