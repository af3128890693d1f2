"""A sweep as it goes: a line for each running job and one that counts; elsewhere plain lines.

On standard error, so that standard output is left to the table or to the JSON line.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pipeline.runner import progress
from pipeline.runner.screen import duration, needs, shown
from pipeline.words import valued

KINDS = {"done": "green", "cached": "green", "infeasible": "yellow", "failed": "red"}
"""Ends of a job, each with its colour."""

MOST_LINES = 12
"""Most lines of running jobs; a cluster may run hundreds."""


def kind(result: Mapping[str, Any]) -> str:
    """``done``, or ``cached`` if no stage had to run; ``infeasible``; ``failed``."""
    if result["status"] != "ok":
        return str(result["status"])
    stages = result.get("stages", {}).values()
    return "cached" if stages and all(stage["cached"] for stage in stages) else "done"


class View(Live):
    """A context manager around the jobs of the sweep in ``folder``, from when there are some.

    Each refresh, on a terminal or not, looks at what the jobs note there: they run in other
    processes, on other machines.
    """

    def __init__(self, folder: Path, console: Console | None = None) -> None:
        self.folder, self.total, self.begin = folder, 0, 0.0
        self.names, self.ended = dict[int, str](), dict[int, str]()
        self.running: dict[int, dict[str, Any]] = {}
        super().__init__(
            console=console or Console(stderr=True, highlight=False, soft_wrap=True),
            transient=True, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.names:
            self.stop()
            self.console.print(Text(self.line()))

    def expect(self, names: Mapping[int, str], total: int = 0) -> None:
        """Show the jobs with these numbers and ``names``, too; there will be ``total`` or more."""
        first = not self.names
        self.names |= names
        self.total = max(self.total, total, len(self.names))
        if first and names:
            self.begin = time.time()
            self.console.print(f"{self.total} jobs in {shown(self.folder)}", markup=False)
            self.start()

    def refresh(self) -> None:
        """Say which jobs have ended since, and draw the others."""
        notes = progress.read(self.folder, without=self.ended)
        self.running = {job: notes[job] for job in sorted(notes) if job in self.names}
        for job, note in list(self.running.items()):
            if result := progress.result(note):
                del self.running[job]
                self.ended[job] = how = kind(result)
                text = Text.assemble(
                    self._name(job), "  ", (how, KINDS[how]), (f"  {_detail(result)}", "dim")
                )
                if not self.console.is_terminal:
                    place = f"{len(self.ended)} of {self.total}, {len(self.running)} running"
                    text.append(f"  ({place}{self.left()})")
                self.console.print(text)
        super().refresh()

    def line(self) -> str:
        """``12 of 40 jobs: 2 running, 5 done, 4 cached, 2 infeasible, …; about 3 min left``"""
        kinds = Counter(self.ended.values())
        parts = [f"{len(self.running)} running", *(f"{kinds[name]} {name}" for name in KINDS)]
        return f"{len(self.ended)} of {self.total} jobs: {', '.join(parts)}{self.left()}"

    def left(self) -> str:
        """``; about 3 min left`` by what those took that ran, or all while there is none; nothing
        while nobody knows and at the end."""
        if not self.ended or len(self.ended) == self.total:
            return ""
        ran = Counter(self.ended.values())["done"] or len(self.ended)
        seconds = (time.time() - self.begin) / ran * (self.total - len(self.ended))
        return f"; about {math.ceil(seconds / 60)} min left"

    def get_renderable(self) -> RenderableType:
        now, running = time.time(), list(self.running.items())
        table = Table.grid(padding=(0, 2))
        for job, note in running[:MOST_LINES]:
            took = duration(now - note["begin"])
            table.add_row(Text(self._name(job)), Text(note["stage"], "cyan"), Text(took, "dim"))
        more = [f"        and {n} more"] if (n := len(running) - MOST_LINES) > 0 else []
        return Group(table, *more, Text(self.line(), "bold"))

    def _name(self, job: int) -> str:
        return f"  {job:>{len(str(self.total))}}  {self.names[job]}"


def _detail(result: Mapping[str, Any]) -> str:
    """Say what one looks for first: why it does not fit, why it failed, the memory it takes."""
    if result["status"] == "infeasible" and result.get("needed_bytes") is not None:
        return needs(result)
    if result.get("error"):
        return str(result["error"])
    return f"peak {valued('pmu_bytes', result['pmu_bytes'])}" if "pmu_bytes" in result else ""
