"""A sweep as it goes: a line for each running job and one that counts; elsewhere plain lines.

On standard error, so that standard output is left to the table or to the JSON line.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pipeline.runner import progress
from pipeline.runner.screen import duration, needs, shown
from pipeline.words import valued

KINDS = {"done": "green", "cached": "green", "infeasible": "yellow", "failed": "red"}
"""How a job ends, and its colour."""

MOST_LINES = 12
"""Of running jobs; a cluster may run hundreds."""

RECENT = 20
"""Ended jobs that tell how long the others take."""


def kind(result: Mapping[str, Any]) -> str:
    """``done``, or ``cached`` if no stage had to run; ``infeasible``; ``failed``."""
    if result["status"] != "ok":
        return str(result["status"])
    stages = result.get("stages", {}).values()
    return "cached" if stages and all(stage["cached"] for stage in stages) else "done"


@dataclass
class Count:
    """What is known of a sweep of ``total`` jobs at a moment: pure bookkeeping."""

    total: int
    running: dict[int, dict[str, Any]] = field(default_factory=dict)
    ended: dict[int, dict[str, Any]] = field(default_factory=dict)
    took: list[tuple[str, float]] = field(default_factory=list)
    """The kind and the seconds of each ended job."""
    width: int = 1
    """Most jobs that ran at a time."""

    def update(self, notes: Mapping[int, dict[str, Any]], now: float) -> list[int]:
        """Take in the notes of jobs that had not ended; returns those that have by now."""
        self.running = {job: notes[job] for job in sorted(notes)}
        fresh = {job: result for job in self.running if (result := progress.result(notes[job]))}
        for job, result in fresh.items():
            begin = self.running.pop(job)["begin"]
            self.took.append((kind(result), now - begin))
        self.ended |= fresh
        self.width = max(self.width, len(self.running))
        return list(fresh)

    def seconds_left(self, now: float) -> float | None:
        """What recent jobs took that ran, or cached ones while there is no other, for the jobs
        left, ``width`` at a time; None before the first has ended."""
        ran = [seconds for how, seconds in self.took if how == "done"]
        if not self.took:
            return None
        usual: float = fmean((ran or [seconds for _, seconds in self.took])[-RECENT:])
        begun: float = sum(
            max(0.0, usual - (now - note["begin"])) for note in self.running.values()
        )
        waiting = self.total - len(self.ended) - len(self.running)
        return (waiting * usual + begun) / self.width

    def line(self, now: float) -> str:
        """``12 of 40 jobs: 2 running, 5 done, 4 cached, 2 infeasible, 1 failed; about 3 m left``"""
        kinds = Counter(kind(result) for result in self.ended.values())
        parts = [f"{len(self.running)} running", *(f"{kinds[name]} {name}" for name in KINDS)]
        return f"{len(self.ended)} of {self.total} jobs: {', '.join(parts)}{self.left(now)}"

    def left(self, now: float) -> str:
        """``; about 3 m 20 s left``, or nothing while nobody knows and at the end."""
        seconds = self.seconds_left(now)
        if seconds is None or len(self.ended) == self.total:
            return ""
        return (
            f"; about {duration(seconds) if seconds >= 60 else f'{max(1, round(seconds))} s'} left"
        )


class View(Live):
    """A context manager around a sweep's jobs from ``first`` on, in ``folder``, called ``names``.

    Each refresh, on a terminal or not, looks at what the jobs note there: they run in other
    processes, on other machines.
    """

    def __init__(
        self, folder: Path, names: Sequence[str], console: Console | None = None, first: int = 0
    ) -> None:
        self.folder, self.first, self.count = folder, first, Count(len(names))
        self.names = dict(enumerate(names, first))
        console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        super().__init__(
            console=console, transient=True, redirect_stdout=False, redirect_stderr=False
        )

    def __enter__(self) -> Self:
        self.console.print(f"{len(self.names)} jobs in {shown(self.folder)}", markup=False)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.console.print(Text(self.count.line(time.time())))

    def refresh(self) -> None:
        """Say which jobs have ended since, and draw the others."""
        count, now = self.count, time.time()
        every = progress.read(self.folder, without=count.ended)
        notes = {job: note for job, note in every.items() if job >= self.first}
        for job in count.update(notes, now):
            how, detail = kind(count.ended[job]), _detail(count.ended[job])
            text = Text.assemble(self._name(job), "  ", (how, KINDS[how]), (f"  {detail}", "dim"))
            if not self.console.is_terminal:
                place = f"{len(count.ended)} of {count.total}, {len(count.running)} running"
                text.append(f"  ({place}{count.left(now)})")
            self.console.print(text)
        super().refresh()

    def get_renderable(self) -> RenderableType:
        now, running = time.time(), list(self.count.running.items())
        table = Table.grid(padding=(0, 2))
        for job, note in running[:MOST_LINES]:
            took = duration(now - note["begin"])
            table.add_row(Text(self._name(job)), Text(note["stage"], "cyan"), Text(took, "dim"))
        more = [f"        and {n} more"] if (n := len(running) - MOST_LINES) > 0 else []
        return Group(table, *more, Text(self.count.line(now), "bold"))

    def _name(self, job: int) -> str:
        return f"  {job:>{len(str(self.first + len(self.names)))}}  {self.names[job]}"


def _detail(result: Mapping[str, Any]) -> str:
    """What one looks for first: why it does not fit, why it failed, the memory it takes."""
    if result["status"] == "infeasible" and result.get("needed_bytes") is not None:
        return needs(result)
    if result.get("error"):
        return str(result["error"])
    return f"peak {valued('pmu_bytes', result['pmu_bytes'])}" if "pmu_bytes" in result else ""
