"""How a request ends without a result: told in one line."""

from __future__ import annotations

UNSAID = 74
"""A stage's exit code when not even its error could be written: a full disk (``EX_IOERR``)."""


class ThimbleError(Exception):
    """A user's mistake or a missing tool: the message says what, where, and what to try."""


class PlanError(ThimbleError):
    """A plan that must not be run, and why: in one line, whatever the names in it are."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))
