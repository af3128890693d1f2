"""Show progress while a set is fetched: a bar on a terminal, one plain line elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TransferSpeedColumn


@dataclass
class Bar:
    """The part of a progress bar that pooch drives."""

    progress: Progress
    task: TaskID

    @property
    def total(self) -> float:
        return self.progress.tasks[0].total or 0.0

    @total.setter
    def total(self, size: float) -> None:
        self.progress.update(self.task, total=size)

    def update(self, size: float) -> None:
        self.progress.advance(self.task, size)

    def reset(self) -> None:
        self.progress.reset(self.task)

    def close(self) -> None:
        self.progress.refresh()


@contextmanager
def download_bar(name: str) -> Iterator[Bar | bool]:
    """Yield a byte bar for one file; ``False`` (pooch's word for none) when no one is looking."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield False
        return
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(progress, progress.add_task(name, total=None))


@contextmanager
def busy(text: str) -> Iterator[None]:
    """Yield a spinner on a terminal, else one line."""
    console = Console(stderr=True)
    if not console.is_terminal:
        print(text, file=sys.stderr, flush=True)
        yield
        return
    with console.status(text):
        yield
