"""The record of what tests cost: how it is kept, and the limits that it says are kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.home import ROOT
from tests.durations import Cost, kept, read, write
from tests.runner.project import clean_environment

DEFAULT_SECONDS = 1400
"""Of `make test`: less than twelve minutes on two cores."""
ALL_SECONDS = 4300
"""Of `.ci/run`'s tests: less than forty minutes on two cores; setup and lint take two more."""


@pytest.fixture(scope="module")
def record() -> dict[str, Cost]:
    found = read()
    assert found, "make durations"
    return found


def test_make_test_takes_twelve_minutes_at_most(record: dict[str, Cost]) -> None:
    assert sum(cost.tiers.get("default", 0.0) for cost in record.values()) < DEFAULT_SECONDS


def test_ci_takes_forty_minutes_at_most(record: dict[str, Cost]) -> None:
    assert sum(sum(cost.tiers.values()) for cost in record.values()) < ALL_SECONDS


def test_every_area_is_in_the_default_tier(record: dict[str, Cost]) -> None:
    areas = {Path(file).parts[1] for file in record if "/" in file.removeprefix("tests/")}
    quick = {Path(file).parts[1] for file, cost in record.items() if "default" in cost.tiers}
    assert areas <= quick and len(areas) >= 15


def test_the_record_is_of_files_that_are_there(record: dict[str, Cost]) -> None:
    assert all((ROOT / file).is_file() for file in record)
    assert list(record) == sorted(record)


def test_small_differences_are_not_written() -> None:
    assert kept(None, 12.345) == 12.0 and kept(None, 0.123) == 0.1
    assert kept(10.0, 12.0) == 10.0 and kept(10.0, 13.4) == 13.0 and kept(0.3, 0.35) == 0.3


def test_a_measured_file_replaces_its_entry(tmp_path: Path) -> None:
    path, here = tmp_path / "tests" / "durations.json", "tests/test_here.py"
    path.parent.mkdir()
    (tmp_path / here).touch()
    cost = Cost()
    cost.add("test_a", "default", 0.2)
    cost.add("test_b", "ci", 7.0)
    write({here: cost, "tests/gone.py": cost}, path)
    assert read(path) == {here: Cost({"default": 0.2, "ci": 7.0}, {"test_b": 7.0})}
    again = Cost()
    again.add("test_b", "default", 7.5)
    write({here: again}, path)
    assert read(path) == {here: Cost({"default": 7.5}, {"test_b": 7.0})}
    write({}, path)
    assert here in read(path)


CONFTEST = """
from pathlib import Path
from tests import durations
from tests.conftest import pytest_addoption, pytest_configure

durations.RECORD = Path(__file__).parent / "tests" / "durations.json"
durations.LIMIT_SECONDS = durations.NAMED_SECONDS = 0.2
"""
TESTS = """
import subprocess, sys, time, pytest
BURN = "import time; end = time.process_time() + 0.3\\nwhile time.process_time() < end: pass"

def test_in_a_subprocess():
    subprocess.run([sys.executable, "-c", BURN], check=True)

def test_that_waits():
    time.sleep(0.4)

@pytest.mark.ci
def test_marked():
    exec(BURN)
"""


def run(project: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    (project / "conftest.py").write_text(CONFTEST)
    (project / "pytest.ini").write_text("[pytest]\nmarkers = ci\n")
    (project / "tests").mkdir()
    (project / "tests" / "test_burns.py").write_text(tests)
    alone = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", *options],
        cwd=project, env={**clean_environment(), **alone}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "with xdist"])
def test_processor_time_counts_and_waiting_does_not(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    done = run(tmp_path, TESTS, *workers, "--write-durations")
    assert done.returncode == 0, done.stdout + done.stderr
    cost = read(tmp_path / "tests" / "durations.json")["tests/test_burns.py"]
    assert cost.tests.keys() == {"test_in_a_subprocess", "test_marked"}
    assert min(cost.tests.values()) >= 0.3 and cost.tiers.keys() == {"default", "ci"}
    warned = done.stdout.partition("without a marker")[2]
    assert "test_in_a_subprocess" in warned and "test_marked" not in warned


@pytest.mark.ci
def test_a_test_that_kills_its_worker_is_named_and_the_others_run(tmp_path: Path) -> None:
    tests = "import os\n\ndef test_kills():\n    os.abort()\n\ndef test_after():\n    pass\n"
    done = run(tmp_path, tests, "-n", "1", "-ra")
    assert "1 failed, 1 passed" in done.stdout and "test_burns.py::test_kills" in done.stdout
    assert "INTERNALERROR" not in done.stdout
