"""Progress of a training for a person: a bar on a terminal, a few plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

PLAIN_LINES = 10


@dataclass
class Reporter:
    """Counts epochs of ``total``; without a bar it prints the first one and then every tenth."""

    total: int
    bar: Progress | None = None
    task: TaskID = TaskID(0)

    def epoch(self, done: int, phase: str, accuracy: float) -> None:
        """``done`` epochs are over; ``accuracy`` is on the validation images."""
        text = f"{phase}: validation accuracy {accuracy:.2%}"
        if self.bar is not None:
            self.bar.update(self.task, completed=done, text=text)
        elif done == 1 or done == self.total or done % -(-self.total // PLAIN_LINES) == 0:
            print(f"epoch {done}/{self.total}, {text}", file=sys.stderr, flush=True)


@contextmanager
def reporting(total: int) -> Iterator[Reporter]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Reporter(total)
        return
    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
    )
    with Progress(*columns, console=console) as bar:
        yield Reporter(total, bar, bar.add_task("training", total=total, text=""))
