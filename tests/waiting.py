"""Waiting for what happens and never for a time: on a loaded machine everything takes longer."""

import time
from collections.abc import Callable

POLL_SECONDS = 0.01


def until(happened: Callable[[], object]) -> None:
    """Return once ``happened()`` is true. There is no deadline but pytest-timeout's."""
    while not happened():
        time.sleep(POLL_SECONDS)
