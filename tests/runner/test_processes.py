"""Processes of stages: one may be there before its turn; memory, garbage and locks."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import ThimbleError
from pipeline.runner.processes import KEPT, environment
from pipeline.runner.workspace import locked
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
    """But in jobs of a sweep, which others are beside."""
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
    swept = project.run("-m", "output=json", "seed=2", "until=generate", "cache.fresh=true")
    assert swept.code == 0
    assert project.ran()[-4:] == ["imports-schedule", "schedule", "imports-generate", "generate"]


def test_one_that_waits_is_ended(project: Project) -> None:
    """If the stage before it fails; if that is the last, there is none."""
    project.write("stages/generate.py", FAILS)
    announced(project, "generate", "build")
    run = project.run("output=json", "until=build")
    assert run.code == 1 and "no luck" in run.json["error"]
    assert "build" not in project.ran()
    assert project.run("output=json", "until=schedule", "train.batch=9").code == 0
    assert "imports-generate" not in project.ran()
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


def test_memory_that_is_freed_is_kept_unless_the_user_has_set_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert environment()["GLIBC_TUNABLES"] == KEPT
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_max=9")
    assert environment()["GLIBC_TUNABLES"] == "glibc.malloc.mmap_max=9"


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
