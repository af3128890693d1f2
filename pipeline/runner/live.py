"""A sweep as it goes: a line for each running job and one that counts; elsewhere plain lines.

On standard error, so that standard output is left to the table or to the JSON line.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pipeline.runner import progress
from pipeline.runner.screen import duration, number, shown

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
    took: list[float] = field(default_factory=list)
    """Seconds of the ended jobs that ran, or of the cached ones while there is no other."""
    ran: bool = False
    width: int = 1
    """Most jobs that ran at a time."""

    def update(self, notes: Mapping[int, dict[str, Any]], now: float) -> list[int]:
        """Take in the notes of jobs that had not ended; returns those that have by now."""
        fresh = []
        for job, note in sorted(notes.items()):
            result = progress.result(note)
            if result is None:
                self.running[job] = note
                continue
            self.running.pop(job, None)
            self.ended[job] = result
            fresh.append(job)
            self._time(kind(result), now - note["begin"])
        self.width = max(self.width, len(self.running))
        return fresh

    def _time(self, how: str, seconds: float) -> None:
        if how == "done" and not self.ran:
            self.ran = True
            self.took.clear()
        if how == "done" or not self.ran:
            self.took.append(seconds)

    def seconds_left(self, now: float) -> float | None:
        """What recent jobs took, for the jobs left, ``width`` at a time; None before the first has
        ended."""
        if not self.took:
            return None
        usual = fmean(self.took[-RECENT:])
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
        seconds = self.seconds_left(now) if len(self.ended) < self.total else None
        if seconds is None:
            return ""
        said = duration(seconds) if seconds >= 60 else f"{max(1, round(seconds))} s"
        return f"; about {said} left"


class View:
    """A context manager around a sweep's jobs from ``first`` on, in ``folder``, called ``names``.

    A thread watches what the jobs note there: they run in other processes, on other machines.
    """

    def __init__(
        self, folder: Path, names: Sequence[str], console: Console | None = None, first: int = 0
    ) -> None:
        self.folder, self.first = folder, first
        self.names = dict(enumerate(names, first))
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self.count = Count(len(names))
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._live = Live(
            console=self.console,
            get_renderable=self._picture,
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> View:
        self.console.print(f"{len(self.names)} jobs in {shown(self.folder)}", markup=False)
        if self.console.is_terminal:
            self._live.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._over.set()
        self._thread.join()
        self._look()
        if self.console.is_terminal:
            self._live.stop()
        self.console.print(Text(self.count.line(time.time())))

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            self._look()

    def _look(self) -> None:
        every = progress.read(self.folder, without=self.count.ended)
        notes = {job: note for job, note in every.items() if job >= self.first}
        for job in self.count.update(notes, time.time()):
            self._say(job)

    def _say(self, job: int) -> None:
        """A line for a job that has ended."""
        result = self.count.ended[job]
        how = kind(result)
        place = len(str(self.first + len(self.names)))
        text = Text(f"  {job:>{place}}  {self.names[job]}  ")
        text.append(how, KINDS[how])
        if detail := _detail(result):
            text.append(f"  {detail}", "dim")
        if not self.console.is_terminal:
            count = self.count
            now = f"{len(count.ended)} of {count.total}, {len(count.running)} running"
            text.append(f"  ({now}{count.left(time.time())})")
        self.console.print(text)

    def _picture(self) -> RenderableType:
        now = time.time()
        table = Table.grid(padding=(0, 2))
        running = list(self.count.running.items())
        for job, note in running[:MOST_LINES]:
            name = Text(f"  {job:>{len(str(self.first + len(self.names)))}}  {self.names[job]}")
            took = Text(duration(now - note["begin"]), "dim")
            table.add_row(name, Text(note["stage"], "cyan"), took)
        more = len(running) - MOST_LINES
        lines: list[RenderableType] = [
            table,
            *([Text(f"        and {more} more")] if more > 0 else []),
        ]
        return Group(*lines, Text(self.count.line(now), "bold"))


def _detail(result: Mapping[str, Any]) -> str:
    """What one looks for first: why it does not fit, why it failed, the memory it takes."""
    if result["status"] == "infeasible" and result.get("needed_bytes") is not None:
        needed, available = number(result["needed_bytes"]), number(result["available_bytes"])
        unit = result.get("unit", "B")
        return f"{result['resource']} needs {needed} {unit} of {available} {unit}"
    if result.get("error"):
        return str(result["error"])
    return f"peak {number(result['pmu_bytes'])} B" if "pmu_bytes" in result else ""
