"""Plug-ins of all tests: what they say of a failure, what a test costs, and which tests run."""

from pathlib import Path

import pytest

from pipeline.strategies.ordinary import Ordinary
from tests import durations, explained, meter
from tests.boards import load_hardware
from tests.programs import git
from tests.strategies.chains import Chain

pytest_plugins = ["pytester"]

FILE = "tests/ci/test_here.py"
"""In a folder that has the name of a tier."""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with a record of its own, the tests of which run in this process."""
    for module in (durations, explained):
        monkeypatch.setattr(module, "ROOT", pytester.path)
    monkeypatch.setattr(durations, "RECORD", pytester.path / "tests" / "durations.json")
    for module, name in ((durations, "NAMED_SECONDS"), (meter, "LIMIT_SECONDS")):
        monkeypatch.setattr(module, name, 0.05)
    pytester.makeini("[pytest]\nmarkers = ci")
    return pytester


def run(project: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    project.makepyfile(**{FILE: tests})
    return project.runpytest("-p", "tests.conftest", *options)


def test_what_a_test_is_about_is_said_of_each_value_that_tells(tmp_path: Path) -> None:
    (tmp_path / "model.c").touch()
    graph, board = Chain((6, 6, 2)).conv("a", 3).graph(), load_hardware("arduino")
    values = {
        "a": Ordinary().plan(graph, board), "b": board, "c": graph, "last_seed": 3, "case": "x",
        "count": 4, "word": "y", "folder": tmp_path, "other": tmp_path.parent,
    }  # fmt: skip
    assert [said for name, value in values.items() if (said := explained.about(name, value))] == [
        "strategy ordinary of chain",
        "board arduino (avr, atmega328p)",
        "graph chain of 1 operators",
        "last_seed 3",
        "case x",
        f"C in {tmp_path}",
    ]


FAILS = """
import subprocess, pytest
def checked(case, seed): assert case < 1
@pytest.mark.ci
def test_loop():
    for seed in range(3): checked(case=seed, seed=seed)
@pytest.mark.parametrize("text", [True, False])
def test_compiler(text):
    subprocess.run("echo out; echo nowhere >&2; false", shell=True, check=True, text=text, **PIPES)
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
"""


def test_a_failure_says_its_case_what_a_command_said_and_what_runs_it_again(
    project: pytest.Pytester,
) -> None:
    sections = run(project, FAILS).stdout.str().split(f" {explained.TITLE} ")[1:]
    again = f"again: python -m pytest -m '' {FILE}::test_loop"
    assert [section.splitlines()[1:4] for section in sections] == [
        ["case 1", "seed 1", again],
        ["nowhere", "", f"again: python -m pytest -m '' '{FILE}::test_compiler[True]'"],
        ["nowhere", "", f"again: python -m pytest -m '' '{FILE}::test_compiler[False]'"],
    ]


TESTS = """
import subprocess, sys, time, pytest
BURN = "import time; end = time.process_time() + 0.1\\nwhile time.process_time() < end: pass"
def test_in_a_subprocess(): subprocess.run([sys.executable, "-c", BURN], check=True)
def test_that_waits(): time.sleep(0.2)
@pytest.mark.ci
def test_marked(): exec(BURN)
"""


@pytest.mark.ci
def test_processor_time_counts_and_ci_fails_without_a_record_or_beyond_a_limit(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert durations.main() == 1  # no run has left a log
    assert run(project, TESTS, "--check-durations", "-k", "no").ret == 5
    done = run(project, TESTS, "--check-durations", "-n", "1")
    assert done.ret == 1 and done.parseoutcomes() == {"passed": 3}
    lacking = f"{FILE} is not in tests/durations.json: make durations"
    done.stdout.fnmatch_lines(
        ["*= without a marker, *", f" *{FILE}::test_in_a_subprocess", lacking]
    )
    done.stdout.no_fnmatch_line(" *test_marked")
    assert durations.main() == 0
    cost = durations.read(durations.RECORD).files[FILE]
    assert cost.tests.keys() == {"test_in_a_subprocess", "test_marked"}
    assert min(cost.tests.values()) >= 0.1 and cost.tiers.keys() == {"default", "ci"}
    assert run(project, TESTS, "--check-durations").ret == 0
    monkeypatch.setattr(durations, "LIMITS_SECONDS", {("default",): 0.01})
    assert run(project, TESTS).ret == 0
    done = run(project, TESTS, "--check-durations")
    assert done.ret == 1
    done.stdout.fnmatch_lines(["default: 0 s of processor time, 0 allowed"])


def test_what_failed_and_passed_on_the_same_code_is_named(project: pytest.Pytester) -> None:
    project.makefile("", **{".gitignore": ".pytest_cache\n__pycache__\nonce\n"})
    git(project.path, "init", "-q")
    git(project.path, "commit", "-qm", "All", "--allow-empty")
    tests = "from pathlib import Path\ndef test_once(): Path('once').touch(exist_ok=False)\n"
    said = "failed and passed on the same code"
    assert said not in run(project, tests).stdout.str()
    assert f"\n{FILE}::test_once\n" in run(project, tests).stdout.str().partition(said)[2]
    assert said not in run(project, f"{tests}# changed").stdout.str()


def test_only_what_is_listed_runs(project: pytest.Pytester) -> None:
    project.makepyfile(test_y="def test_c(): pass")
    project.makefile("", only=f"{FILE}::test_b\ntest_y.py\n{FILE}::test_gone\n")
    done = run(project, "def test_a(): pass\ndef test_b(): pass\n", "--only=only", "-v")
    assert done.parseoutcomes() == {"passed": 2}
    done.stdout.fnmatch_lines_random([f"{FILE}::test_b *", "test_y.py::test_c *"])
