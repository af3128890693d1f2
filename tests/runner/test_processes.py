"""Processes of stages: early ones, memory, garbage and locks. Ctrl-C, which a terminal sends to all
of a command's processes, is one line; each test waits until one is where it shall be hit."""

import contextlib
import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import ThimbleError
from pipeline.runner.processes import KEPT, environment
from pipeline.runner.sweep import NOT_STARTED
from pipeline.runner.workspace import locked
from tests.runner.project import Project, nothing_outlives
from tests.tiers import quick
from tests.waiting import until

HERE = """\
import os
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write("{}\\n")
"""
ASLEEP = HERE + "import time\ntime.sleep(600)\n"
"""Python that says that it is here, and stays."""


def announced(project: Project, *stages: str) -> None:
    """Have each stage's process say that it imports, before its turn."""
    for stage in stages:
        path = project.root / "stages" / f"{stage}.py"
        path.write_text(HERE.format(f"imports-{stage}") + path.read_text())


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


def interrupted(process: subprocess.Popen[str]) -> tuple[str, list[str]]:
    """Its standard output, and its lines on standard error, after Ctrl-C on the terminal."""
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert "Traceback" not in err and "KeyboardInterrupt" not in err, err
    return out, err.splitlines()


def test_while_python_still_imports(project: Project) -> None:
    project.write("pipeline/runner/command.py", ASLEEP.format("imports"))
    process = project.start(start_new_session=True, real=True)
    project.wait_for("imports")
    assert interrupted(process) == ("", ["interrupted: nothing had begun"])


@pytest.mark.ci
def test_while_a_stage_still_imports(project: Project) -> None:
    """Importing PyTorch takes seconds."""
    project.write("stages/fetch.py", ASLEEP.format("imports"))
    process = project.start("output=json", start_new_session=True)
    project.wait_for("imports")
    out, lines = interrupted(process)
    assert lines[-1].startswith("interrupted: nothing half-written is left")
    result = json.loads(out)
    assert (result["status"], result["error"]) == ("failed", "interrupted")
    assert json.loads((Path(result["run_dir"]) / "result.json").read_text()) == result
    assert result["stages"] == {}
    nothing_outlives(project)


@pytest.mark.parametrize("strikes", quick(1, [1, 2]))
def test_ctrl_c_while_a_search_is_on(project: Project, strikes: int) -> None:
    """The first ends the search, whose best so far is no cached result; the second ends the run."""
    project.env["FAKE_ACT"] = "schedule:search" if strikes == 1 else "schedule:stubborn"
    words = ("output=json", "until=generate", "hydra.run.dir=outputs/here")
    process = project.start(*words, start_new_session=True)
    project.wait_for("searching")
    os.killpg(process.pid, signal.SIGINT)
    if strikes == 2:
        project.wait_for("enough")
        interrupted(process)
        nothing_outlives(project)
        return
    out, err = process.communicate()
    assert process.returncode == 0 and json.loads(out)["status"] == "ok", err
    project.env["FAKE_ACT"] = ""
    project.ran()
    assert project.run(*words).code == project.run("output=json", "until=generate").code == 0
    assert project.ran() == ["schedule"], "in the same folder or another: what is whole is kept"


@pytest.mark.parametrize(
    "moment", quick(["a stage runs"], ["a worker starts", "a stage imports", "a stage runs"])
)
def test_side_by_side(project: Project, moment: str) -> None:
    if moment == "a worker starts":
        asleep = ASLEEP.format("here").replace("\n", "\n    ")
        program = f"import sys\nif 'popen_loky' in str(sys.orig_argv):\n    {asleep}"
        project.write("site/sitecustomize.py", program)
        project.env["PYTHONPATH"] = str(project.root / "site")
    elif moment == "a stage imports":
        project.write("stages/train.py", ASLEEP.format("here"))
    else:
        project.hold("train")
    args = ("-m", "output=json", "seed=1,2,3,4", "hydra/launcher=local")
    real = moment == "a worker starts"
    process = project.start(*args, start_new_session=True, real=real)
    project.wait_for("train" if moment == "a stage runs" else "here")
    out, lines = interrupted(process)
    assert lines[0].startswith("4 jobs in ") and "of 4 jobs: " in lines[1]
    assert len(lines) == 3 and lines[2].startswith("interrupted: ")
    sweep = json.loads(out)
    assert sweep["error"] == "interrupted" and sweep["status"] == "failed"
    ended = [(job["status"], job.get("error")) for job in sweep["jobs"]]
    assert set(ended) <= {("failed", "interrupted"), (NOT_STARTED, None)}
    assert ended[2:] == [(NOT_STARTED, None)] * 2
    nothing_outlives(project)


@pytest.mark.ci
def test_what_was_not_started_is_no_failure(project: Project) -> None:
    """In the table and in what is kept; here after SIGTERM, of run.py alone."""
    project.hold("train")
    process = project.start("-m", "seed=1,2", start_new_session=True)
    project.wait_for("train")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert process.returncode == 130 and "Traceback" not in err, err
    assert err.splitlines()[-1].startswith("interrupted: ")
    rows = [line for line in out.splitlines() if line.startswith("seed=")]
    assert "failed" in rows[0] and NOT_STARTED in rows[1] and "failed" not in rows[1]
    (kept,) = (project.root / "multirun").glob("*/*/result.json")
    sweep = json.loads(kept.read_text())
    assert [job["status"] for job in sweep["jobs"]] == ["failed", NOT_STARTED]
    assert sweep["status"] == "failed" and sweep["error"] == "interrupted"
    assert sweep["jobs"][0]["error"] == "interrupted" and Path(sweep["jobs"][0]["run_dir"]).is_dir()
    nothing_outlives(project)


LATE = """\
import os, runpy, signal, time
from pipeline.runner.processes import Processes

start = Processes.start

def late(self, stage, command):
    if stage == "fetch":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    start(self, stage, command)

Processes.start = late
runpy.run_path("run.py", run_name="__main__")
"""
"""A run that is told to end in the moment before it starts a stage."""


def test_nothing_starts_after_the_end(project: Project) -> None:
    """It once waited for the end of a training that nobody had ended."""
    project.hold("fetch")
    project.write("late.py", LATE)
    process = project.start(program="late.py")
    _, err = process.communicate()
    project.release("fetch")
    assert process.returncode == 130 and err.startswith("interrupted: "), err
    assert project.ran() == []
    nothing_outlives(project)


@pytest.mark.ci
def test_while_another_run_is_at_the_same_stage(project: Project) -> None:
    project.hold("train")
    first = project.start()
    project.wait_for("train")
    second = project.start()
    assert second.stdout is not None
    until(lambda: "another run" in second.stdout.readline())  # type: ignore[union-attr]
    second.send_signal(signal.SIGTERM)
    _, err = second.communicate()
    project.release("train")
    assert second.returncode == 130 and err.startswith("interrupted: "), err
    first.communicate()
    assert first.returncode == 0
