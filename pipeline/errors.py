"""The two ways a request can end without a result, both told in one line."""

from __future__ import annotations


class ThimbleError(Exception):
    """A user's mistake or a missing tool: the message says what, where, and what to try."""


class Infeasible(ThimbleError):
    """The network does not fit. A result, not a crash: it becomes a row in a sweep.

    Args:
        where: the step or layer that needs most, e.g. ``conv2 (12x12x5 -> 10x10x8)``.
        resource: what ran out, e.g. ``SRAM``.
        needed_bytes: bytes needed.
        available_bytes: bytes the hardware has for it.
        advice: what to try.
    """

    def __init__(
        self, where: str, resource: str, needed_bytes: float, available_bytes: float, advice: str
    ) -> None:
        self.where = where
        self.resource = resource
        self.needed_bytes = needed_bytes
        self.available_bytes = available_bytes
        self.advice = advice
        super().__init__(
            f"does not fit: {resource} needs {needed_bytes:g} B of {available_bytes:g} B, "
            f"most of it at {where}; {advice}"
        )
