"""The lock of a run's folder, which is removed at the run's end: never do two have it."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pipeline.errors import ThimbleError
from pipeline.runner.workspace import locked

TIMES = 20


def test_only_one_has_it_though_it_goes_each_time(tmp_path: Path) -> None:
    lock, inside, had = tmp_path / "run" / ".dvc" / "run.lock", list[int](), list[int]()
    lock.parent.mkdir(parents=True)

    def tries(number: int) -> None:
        while had.count(number) < TIMES:
            with contextlib.suppress(ThimbleError), locked(lock):
                inside.append(number)
                time.sleep(0)
                assert inside == [number]
                had.append(inside.pop())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tries, range(8)))
    assert len(had) == 8 * TIMES and not lock.exists()
