"""Entries of the spool: all that is known of a run until MLflow has it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

KILLED = "killed"
"""The ``error`` of a run that nobody could end."""


@dataclass(frozen=True)
class Entry:
    """A run to be tracked.

    Attributes:
        folder: the run's folder, or the sweep's.
        result: what ``result.json`` holds.
        sweep: of a job, the folder of the sweep it belongs to; "" for a single run.
        parent: the entry ends the sweep whose folder is ``folder``.
        title: what a person calls it.
        begin, end: seconds since 1970.
        tags: what else is known of it, such as the code's version when it began.
    """

    name: str
    folder: str
    result: dict[str, Any]
    sweep: str = ""
    parent: bool = False
    title: str = ""
    begin: float = 0.0
    end: float = field(default_factory=time.time)
    tags: dict[str, str] = field(default_factory=dict)
