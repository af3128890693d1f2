"""A stage's process may be there before its turn: it waits, is used once, and never stays. It keeps
the memory that it frees, unless the user's C library is told otherwise."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from pipeline.runner.processes import KEPT, environment
from tests.runner.project import Project, nothing_outlives

EARLY = """\
import os
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write("imports-{stage}\\n")
"""


def announced(project: Project, *stages: str) -> None:
    """Have each stage's process say that it imports, before its turn."""
    for stage in stages:
        path = project.root / "stages" / f"{stage}.py"
        path.write_text(EARLY.format(stage=stage) + path.read_text())


@pytest.mark.ci
def test_it_imports_while_the_stage_before_works(project: Project) -> None:
    announced(project, "fetch", "schedule", "generate", "build")
    project.hold("schedule")
    process = project.start("output=json", "until=build")
    project.wait_for("imports-generate")
    before = (project.root / "log").read_text().split()
    assert before[-1] in ("imports-generate", "schedule")
    assert "generate" not in before and "imports-build" not in before
    project.release("schedule")
    process.communicate()
    order = project.ran()
    for stage in ("fetch", "schedule", "generate", "build"):
        assert order.count(f"imports-{stage}") == order.count(stage) == 1
    assert order.index("imports-generate") < order.index("generate")


@pytest.mark.parametrize("ends", ["fails", "is the last"])
def test_one_that_waits_is_ended(project: Project, ends: str) -> None:
    announced(project, "build")
    if ends == "fails":
        (project.root / "stages" / "generate.py").write_text(FAILS)
        run = project.run("output=json", "until=build")
        assert run.code == 1 and "no luck" in run.json["error"]
        assert "build" not in project.ran()
    else:
        assert project.run("output=json", "until=generate").code == 0
        assert "imports-build" not in project.ran()
    nothing_outlives(project)


FAILS = """\
import os
import time
from pathlib import Path
from pipeline.errors import ThimbleError
from stages._main import run

def main():
    log = Path(os.environ["FAKE_LOG"])
    while "imports-build" not in log.read_text():
        time.sleep(0.01)
    raise ThimbleError("no luck")

run(main)
"""


@pytest.mark.ci
def test_code_that_cannot_be_imported_is_told_in_its_turn(project: Project) -> None:
    project.write("stages/generate.py", "import nothing_of_that_name\n")
    run = project.run("output=json", "until=build")
    assert run.code == 1 and run.json["error"].startswith("generate: ")
    assert run.json["stages"].keys() == {"fetch", "train", "prune", "quantize", "schedule"}


@pytest.mark.ci
def test_jobs_of_a_sweep_start_nothing_early(project: Project) -> None:
    announced(project, "schedule", "generate")
    assert project.run("-m", "output=json", "seed=1", "until=generate").code == 0
    order = project.ran()
    assert order[-4:] == ["imports-schedule", "schedule", "imports-generate", "generate"]


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
