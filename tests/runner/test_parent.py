"""What is forked in place of ``python PROGRAM`` is one: streams, folder, signals and ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.parent import Forked

PROGRAM = """\
import gc, json, os, signal, sys, threading
import beside
said = {
    "name": __name__, "file": __file__, "words": sys.argv, "first": sys.path[0],
    "cwd": os.getcwd(), "variables": sorted(os.environ), "umask": os.umask(0), "gc": gc.isenabled(),
    "session": os.getsid(0) == os.getpid(), "interrupt": str(signal.getsignal(signal.SIGINT)),
    "blocked": [int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])],
    "threads": threading.active_count(), "input": sys.stdin.read(),
    "open": sorted(os.listdir("/proc/self/fd"))[:3],
}
print(json.dumps(said))
print("é \\udcff", file=sys.stderr)
sys.exit({"says": "why", "number": 3, "none": None}[sys.argv[1]])
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path / "program.py"


@pytest.mark.parametrize("word", ["says", "number", "none"])
def test_a_fork_is_as_a_start(program: Path, word: str) -> None:
    there = program.parent / "there"
    there.mkdir()
    env = {"A": "b", "LC_ALL": "C.UTF-8", "PYTHONPATH": "/x"}
    ended = []
    for start in (subprocess.Popen, Forked):
        with start(
            [sys.executable, "../program.py", word], cwd=there, env=env, encoding="utf-8",
            umask=0o027, start_new_session=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            ended.append((*process.communicate("given"), process.returncode))
    real, forked = ended
    assert forked == real
