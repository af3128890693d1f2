"""Errors that end a request without a result: told in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

UNSAID = 74
"""A stage's exit code when not even its error could be written: a full disk (``EX_IOERR``)."""


class ThimbleError(Exception):
    """A user's mistake or a missing tool: the message says what, where, and what to try, in one
    line, whatever the names in it are."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


class Unreadable(ThimbleError):
    """The user's network or data cannot be read: nothing was computed, and there is no run."""


@contextmanager
def reading() -> Iterator[None]:
    """Raise what is wrong with the user's network or data as Unreadable."""
    try:
        yield
    except ThimbleError as error:
        raise Unreadable(str(error)) from error


def said(error: Exception) -> str:
    """Return the kind and the first line of what others' code raised."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


class PlanError(ThimbleError):
    """A plan that must not be run, and why."""
