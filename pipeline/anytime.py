"""End a search: when it has looked at all, after some seconds, or at one Ctrl-C; then the best
plan so far is the plan.
"""

import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType, TracebackType
from typing import Generic, Self, TypeVar

from rich.console import Console
from rich.status import Status

Plan = TypeVar("Plan")

CUT_SHORT = ("search", "cut short")
"""Marks a plan that more time might have made better: it is not kept in the cache."""

RUNNING = Path(".stages/searching")
"""There while a stage's search may be cut short: run.py then sends ``ENOUGH`` at a Ctrl-C."""

ENOUGH = signal.SIGUSR1

AGAIN_SECONDS = 0.2
"""Raise again after so many: an exception may get lost, such as in a destructor."""


class _Over(BaseException):
    """The search is over: no error that a search might take for its own."""


class AnytimeSearch(Generic[Plan]):
    """A context manager around a search, left when time is over and there is a plan.

    Attributes:
        best: the plan so far.

    Args:
        seconds: of the search; 0: as long as it takes.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds, self._over = seconds, False
        self.best: Plan | None = None
        self._ends, self._status, self._said, self._bound = ExitStack(), Status(""), "", ""
        self._heard = threading.current_thread() is threading.main_thread()
        self._shown = False

    def __enter__(self) -> Self:
        console = Console(stderr=True)
        self._shown = console.is_terminal
        if self._shown:
            self._status = self._ends.enter_context(console.status("planning"))
        if self._heard:
            stage = RUNNING.parent.is_dir()
            for name in (signal.SIGALRM, ENOUGH):
                before = signal.signal(name, self._end)
                # sent as the search ends, it must not end the stage
                self._ends.callback(signal.signal, name, signal.SIG_IGN if stage else before)
            self._ends.callback(signal.setitimer, signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_REAL, self.seconds, AGAIN_SECONDS)
            if stage:
                RUNNING.touch()
                self._ends.callback(RUNNING.unlink, missing_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> bool:
        self._heard = False
        self._ends.close()
        return kind is _Over

    def tries(self, what: str, share: float) -> None:
        """Say what is looked at next, and how much of all has been."""
        said = f"{share:.0%} searched, {self._said}{self._bound}looking at {what}"
        self._status.update(f"planning: {said}; Ctrl-C: enough")

    def has(self, plan: Plan, said: str) -> None:
        """``plan`` is the best so far, perhaps the last; ``said``: how good that is."""
        self.best = plan
        self._said = f"{said} so far, "
        if self._over:
            raise _Over

    def bounded(self, least: Callable[[], str]) -> None:
        """Nothing is better than ``least``, which is asked only where that is shown."""
        if self._shown and not self._bound:
            self._bound = f"{least()} at least, "

    def _end(self, _: int, __: FrameType | None) -> None:
        self._over = True
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS, AGAIN_SECONDS)
        if self.best and self._heard:
            raise _Over
