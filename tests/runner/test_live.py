"""What one sees of a sweep as it goes: counts, a line a job, the time left; also on a terminal."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pipeline.artifacts import write_json
from pipeline.runner import progress
from pipeline.runner.live import View, kind
from tests.runner.project import Project, clean_environment

RAN = {"train": {"cached": True, "seconds": 0.1}, "measure": {"cached": False, "seconds": 1.0}}
CACHED = {"train": {"cached": True, "seconds": 0.1}}


def ended(folder: Path, job: int, begin: float, **result: Any) -> None:
    place = folder / str(job)
    write_json(place / "result.json", {"run_dir": str(place), **result})
    running(folder, job, begin)


def running(folder: Path, job: int, begin: float, stage: str = "train") -> None:
    note = {"folder": str(folder / str(job)), "begin": begin, "stage": stage}
    write_json(folder / progress.JOBS / f"{job}.json", note)


def test_counting(tmp_path: Path) -> None:
    """Elsewhere than on a terminal: a line for each job that has ended, and one at the end."""
    begun = time.time()
    screen = tmp_path / "screen"
    with screen.open("w") as stream, View(tmp_path, Console(file=stream, width=200)) as view:
        view.expect({n: f"seed={n}" for n in range(3)}, total=10)
        assert "left" not in view.line(), "nobody can know yet"
        running(tmp_path, 1, begun)
        running(tmp_path, 2, begun)
        ended(tmp_path, 0, begun, status="ok", stages=CACHED)
        view.refresh()
        progress.lost(tmp_path, 3, progress.KILLED)
        ended(tmp_path, 1, begun, status="ok", stages=RAN)
        view.refresh()
        view.begin -= 100  # a job that runs took as long; 8 are left
        assert view.line() == (
            "2 of 10 jobs: 1 running, 1 done, 1 cached, 0 infeasible, 0 failed; about 14 min left"
        ), "nobody has named job 3"
        view.expect({3: "seed=3"})
        view.refresh()
    text = screen.read_text()
    assert text.startswith("10 jobs in ") and "seed=0  cached    (1 of 10, 2 running; ab" in text
    assert f"seed=3  failed  {progress.KILLED}" in text
    assert text.splitlines()[-1].startswith("3 of 10 jobs: 1 running, 1 done, 1 cached, 0 inf")


def test_the_result_counts_and_not_the_launchers_guess(tmp_path: Path) -> None:
    """A process killed after it had written its result has a result; half a note is no news."""
    assert kind({"status": "ok", "stages": RAN}) == "done"
    assert kind({"status": "ok", "stages": CACHED}) == "cached"
    ended(tmp_path, 0, 1.0, status="ok", stages=RAN, pmu_bytes=430.5)
    progress.lost(tmp_path, 0, progress.KILLED)
    (tmp_path / progress.JOBS / "1.json").write_text('{"folder": ')
    (note,) = progress.read(tmp_path).values()
    result = progress.result(note)
    assert result is not None and result["status"] == "ok" and result["pmu_bytes"] == 430.5


def test_a_terminal_shows_running_jobs(tmp_path: Path) -> None:
    with (tmp_path / "screen").open("w") as stream:
        console = Console(file=stream, force_terminal=True, width=100, color_system=None)
        with View(tmp_path, console) as view:
            view.expect({n: f"seed={n}" for n in range(20)})
            for job in range(1, 15):
                running(tmp_path, job, 1e9)
            ended(tmp_path, 0, 1e9, status="infeasible", resource="SRAM", needed_bytes=2337,
                  available_bytes=2048)  # fmt: skip
            view.refresh()
    text = (tmp_path / "screen").read_text()
    assert "seed=0  infeasible  SRAM needs 2,337 B of 2,048 B" in text
    assert re.search(r"  12  seed=12  train  \d+ m", text) and "seed=13" not in text
    assert "and 2 more" in text and "1 of 20 jobs: 14 running, 0 done, 0 cached, 1 inf" in text


RUNNING = r"0  strategy=herringbone\s+schedule\s+\d"
COUNTED = "0 of 2 jobs: 2 running, 0 done, 0 cached, 0 infeasible, 0 failed"


@pytest.mark.ci
def test_the_live_view_of_a_real_sweep(project: Project) -> None:
    """In a terminal of 110 columns; JSON is still the only line of standard output."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 110, 0, 0))
    args = ["-m", "strategy=herringbone,naive", "hydra/launcher=local", "tracking=none"]
    env = {**clean_environment(), "FAKE_LOG": str(project.root / "log"), "TERM": "xterm-256color"}
    project.hold("schedule")
    with subprocess.Popen(
        [sys.executable, "run.py", *args, "output=json"], cwd=project.root, env=env,
        stdin=follower, stdout=subprocess.PIPE, stderr=follower,
    ) as process:  # fmt: skip
        os.close(follower)
        screen, held = "", True
        for part in parts(leader):
            screen += part
            if held and re.search(RUNNING, plain(screen)) and COUNTED in plain(screen):
                project.release("schedule")
                held = False
        out = process.stdout.read() if process.stdout else b""
    assert process.returncode == 0, screen
    text = plain(screen)
    assert re.search(RUNNING, text) and COUNTED in text, "a running job's line"
    assert "strategy=naive  infeasible  SRAM needs 3,000 B of 2,048 B" in text
    assert "2 of 2 jobs: 0 running, 1 done, 0 cached, 1 infeasible, 0 failed" in text
    assert out.count(b"\n") == 1 and len(json.loads(out)["jobs"]) == 2


def plain(screen: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen)


def parts(leader: int) -> Iterator[str]:
    """What is written to the terminal, bit by bit until its last process ends."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with contextlib.suppress(OSError):  # Linux: nobody has the other end any more
        while part := os.read(leader, 65536):
            yield decoder.decode(part)
    os.close(leader)
