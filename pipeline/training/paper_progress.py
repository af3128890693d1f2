"""What a person sees of a training of hours: one line a step, with the time it was written."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Steps:
    """Prints to standard error; nothing of it goes into results."""

    begin: float = field(default_factory=time.monotonic)

    def done(self, phase: str, step: int, of: int, text: str) -> None:
        """``step`` of ``of`` of ``phase`` is over."""
        minutes = (time.monotonic() - self.begin) / 60
        print(f"{minutes:7.1f} min  {phase} {step}/{of}: {text}", file=sys.stderr, flush=True)
