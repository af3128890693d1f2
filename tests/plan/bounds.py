"""What a test may spend on a plan that may be meant to take for ever."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import psutil

MOST_CALLS = 2_000_000
"""Of Python functions, to judge a plan of a few steps."""

MOST_BYTES = 4 << 30
"""Of memory, beside what was there before."""


class OverBudgetError(BaseException):
    """More calls than a plan of a few steps is worth."""


@contextmanager
def little_memory() -> Iterator[None]:
    """``MemoryError`` beyond ``MOST_BYTES``."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + MOST_BYTES
    if limits[0] == resource.RLIM_INFINITY or most < limits[0]:
        resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@contextmanager
def bounded() -> Iterator[None]:
    """With little memory, and ``OverBudgetError`` after ``MOST_CALLS`` calls: a measure of work
    that is the same on every machine under any load. It takes as long again as what it measures."""
    left = MOST_CALLS

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal left
        left -= event == "call"
        if left < 0:
            sys.setprofile(None)
            raise OverBudgetError(f"more than {MOST_CALLS} calls")

    before = sys.getprofile()
    with little_memory():
        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(before)
