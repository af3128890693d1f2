"""Preparing what comes next while the present is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def one_ahead(make: Callable[[int], T], stop: int) -> Iterator[Callable[[int], T]]:
    """``make``, for rising numbers below ``stop``: while one result is used, a thread of its own
    makes the next. PyTorch's operators let go of the interpreter, so both really run."""
    waiting: dict[int, Future[T]] = {}
    with ThreadPoolExecutor(max_workers=1) as pool:

        def result(index: int) -> T:
            current = waiting.pop(index, None) or pool.submit(make, index)
            if index + 1 < stop:
                waiting[index + 1] = pool.submit(make, index + 1)
            return current.result()

        try:
            yield result
        finally:
            for future in waiting.values():
                future.cancel()
