"""Notes that a search for a plan with a card leaves in the plan about the plans that it tried."""

from __future__ import annotations

from typing import NamedTuple


class Tried(NamedTuple):
    """A plan that was tried, of one inference: its time, that of the card's reads and writes, and
    the bytes of feature maps that are written."""

    latency_us: float
    read_us: float
    write_us: float
    written_bytes: int

    def __str__(self) -> str:
        return f"{self.latency_us:.0f} {self.read_us:.0f} {self.write_us:.0f} {self.written_bytes}"

    @classmethod
    def of(cls, text: str) -> Tried:
        *times_us, written_bytes = text.split()
        latency_us, read_us, write_us = map(float, times_us)
        return cls(latency_us, read_us, write_us, int(written_bytes))
