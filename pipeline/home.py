"""Look up where things are kept between runs: one folder per project, or ``THIMBLE_HOME``."""

from __future__ import annotations

import os
import stat
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The project: the folder of run.py, dvc.yaml, stages, pipeline and firmware."""

DEFAULT = ".thimble"
"""The folder where things are kept unless ``THIMBLE_HOME`` says otherwise."""

STAGES = (
    "fetch",
    "train",
    "prune",
    "quantize",
    "schedule",
    "generate",
    "build",
    "simulate",
    "prove",
    "measure",
)


IMPORT = "import"
"""What a run may end after before its first stage: the network is shown."""


def no_later(stage: str, than: str) -> bool:
    """Check whether a run ``until`` the stage ``than``, or ``IMPORT``, goes through ``stage``."""
    return than != IMPORT and STAGES.index(stage) <= STAGES.index(than)


PACKAGE = "package"
"""The stage after all others, of runs that are to make one: it needs a plan."""


def home() -> Path:
    """The absolute folder of the shared cache, the locks, the checkpoints and the tracking."""
    return Path(os.environ.get("THIMBLE_HOME") or default()).absolute()


def default() -> Path:
    """In the source tree; where it is installed, in the folder that the command is typed in."""
    return (ROOT if (ROOT / "pyproject.toml").is_file() else typed()) / DEFAULT


def typed() -> Path:
    """Return the folder that the command was typed in; stages are told, they run elsewhere."""
    return Path(os.environ.get("THIMBLE_TYPED") or Path.cwd()).absolute()


def close_to_others() -> None:
    """Keep others from writing to what this process makes from now on, or one that it starts."""
    os.umask(os.umask(0o022) | stat.S_IWOTH)


def lock_file(name: str) -> str:
    """Return the path of the lock called ``name``; lock files stay, they are empty."""
    folder = home() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / f"{name}.lock")
