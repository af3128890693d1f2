"""Stages keep the memory that they free, unless the user's C library is told otherwise."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from pipeline.runner.processes import KEPT, environment

FAULTS = """
import resource
import numpy as np
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(10_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""
"""How many pages an array of 80 MB has to be given after one of its size was freed."""


def faults() -> int:
    words = [sys.executable, "-c", FAULTS]
    said = subprocess.run(words, env=environment(), capture_output=True, check=True)
    return int(said.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the tunables are glibc's")
def test_an_array_gets_the_memory_of_one_that_was_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert faults() < 100
    assert "GLIBC_TUNABLES" not in os.environ


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_max=9")
    assert environment()["GLIBC_TUNABLES"] == "glibc.malloc.mmap_max=9" != KEPT
