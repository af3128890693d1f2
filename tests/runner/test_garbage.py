"""Garbage is collected again before anything long begins."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from pipeline.runner import garbage
from tests.runner.project import Project


@pytest.fixture
def disabled() -> Iterator[None]:
    gc.disable()
    yield
    gc.unfreeze()
    gc.enable()


def test_what_is_there_is_left_alone(disabled: None) -> None:
    garbage.collect()
    kept = gc.get_freeze_count()
    assert gc.isenabled() and kept > 1000
    made: list[list[int]] = [[] for _ in range(100_000)]  # more than other threads do
    garbage.collect()  # a worker's next job: what the one before left is not kept for ever
    assert gc.get_freeze_count() < kept + len(made)


PROBE = """
import gc

assert not gc.isenabled()
ran = Job._record

def record(self, outcome):
    assert gc.isenabled() and gc.get_freeze_count()
    return ran(self, outcome)

Job._record = record
"""


@pytest.mark.ci
def test_a_run_collects(project: Project) -> None:
    path = project.root / "pipeline" / "runner" / "job.py"
    path.write_text(path.read_text() + PROBE)
    assert project.run("output=json", "until=fetch", real=True).json["status"] == "ok"
