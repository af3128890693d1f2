"""Progress of a long training for a person: where it is, how good it is, how long it has taken."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

from pipeline.training.progress import PLAIN_LINES


@dataclass(frozen=True)
class Steps:
    """Show progress on standard error: a line that changes on a terminal, else some lines a phase.

    None of it goes into results: these have no times.
    """

    begin: float = field(default_factory=time.monotonic)

    def done(self, phase: str, step: int, of: int, text: str) -> None:
        """``step`` of ``of`` of ``phase`` is over."""
        minutes = (time.monotonic() - self.begin) / 60
        line = f"{minutes:6.1f} min  {phase} {step}/{of}: {text}"
        if sys.stderr.isatty():
            end = "\n" if step == of else ""
            print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)
        elif step in (1, of) or step % -(-of // PLAIN_LINES) == 0:
            print(line, file=sys.stderr, flush=True)
