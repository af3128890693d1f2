"""Damaged .tflite files: a graph or one clear line; no other error, crash, hang or allocation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.home import ROOT
from tests.importers.tflite_fuzz import damaged

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").is_file(), reason="memory is limited as Linux does it"
)


def fuzz(first: int, count: int) -> tuple[int, int]:
    """How many files were read and how many refused."""
    command = [sys.executable, "-W", "error", "-m", "tests.importers.tflite_fuzz"]
    done = subprocess.run(
        [*command, str(first), str(count)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-3000:]}"
    read, refused = map(int, done.stdout.split())
    assert read + refused == count
    return read, refused


@pytest.mark.ci
def test_hundreds_of_damaged_files() -> None:
    read, refused = fuzz(0, 600)
    assert min(read, refused) > 30  # damage that nothing notices, and damage that is


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 30_000, 5_000))
def test_thousands_of_damaged_files(first: int) -> None:
    fuzz(first, 5_000)


def test_the_same_seed_gives_the_same_file() -> None:
    assert damaged(5) == damaged(5) != damaged(6)
