"""Report what lossless passes saved: each that changed the network, and all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

SIZES = ("weight_bytes", "macs", "operators")


@dataclass(frozen=True)
class Saving:
    """One of ``SIZES`` before and after, and the passes that made it smaller."""

    key: str
    before: float
    after: float
    by: tuple[str, ...]

    @property
    def share(self) -> float:
        """Return the share that is left of what there was."""
        return self.after / self.before if self.before else 1.0


def savings(passes: Sequence[Mapping[str, Any]]) -> tuple[Saving, ...]:
    """Return those that are any.

    Args:
        passes: the content of passes.json: the sizes as imported, then after each pass.
    """
    found = []
    for key in SIZES if passes else ():
        before, after = passes[0][key], passes[-1][key]
        by = [new["pass"] for old, new in pairwise(passes) if new[key] < old[key]]
        if after < before:
            found.append(Saving(key, before, after, tuple(by)))
    return tuple(found)
