"""Whatever a file holds: a graph, or one clear line; no other error, crash, hang or allocation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.home import ROOT
from tests.importers.fuzz import hostile

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").is_file(), reason="memory is limited as Linux does it"
)


def fuzz(name: str, first: int, count: int) -> dict[str, int]:
    """How often each outcome came."""
    command = [sys.executable, "-W", "error", "-m", "tests.importers.fuzz", name]
    done = subprocess.run(
        [*command, str(first), str(count)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    found: dict[str, int] = json.loads(done.stdout)
    assert sum(found.values()) == count
    return found


@pytest.mark.ci
@pytest.mark.parametrize(("name", "count"), [("tflite", 600), ("onnx", 3000)])
def test_damaged_files(name: str, count: int) -> None:
    """Neither all whole nor all refused for the same: damage that nothing notices, and that is."""
    found = fuzz(name, 0, count)
    assert found["read"] > count / 20 and len(found) > count / 10


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tflite", "onnx"])
@pytest.mark.parametrize("first", range(10_000, 50_000, 10_000))
def test_many_damaged_files(name: str, first: int) -> None:
    fuzz(name, first, 10_000)


def test_hostile_files() -> None:
    assert "read" not in fuzz("hostile", 0, len(hostile()))
