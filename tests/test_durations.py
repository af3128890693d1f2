"""The record of what tests cost: how it is kept, and the limits that are checked by it."""

from pathlib import Path
from typing import Any

from pipeline.home import ROOT
from tests import durations
from tests.durations import Cost, Record, read, write

HERE = "tests/test_here.py"


def log(tests: dict[str, tuple[str, float]], work: float = 0.03, **more: Any) -> dict[str, Any]:
    return {"tiers": ["default", "ci"], "work_seconds": [work], "tests": tests, **more}


def test_the_record_is_of_files_that_are_there_and_within_its_limits() -> None:
    """Every area is in the default tier."""
    files = read().files
    areas = {Path(file).parts[1] for file in files if "/" in file.removeprefix("tests/")}
    quick = {Path(file).parts[1] for file, cost in files.items() if "default" in cost.tiers}
    assert areas <= quick and len(areas) >= 15
    assert all((ROOT / file).is_file() for file in files) and list(files) == sorted(files)
    assert not list(durations.beyond(files))


def test_a_machine_slow_at_everything_passes_and_a_file_that_grew_does_not() -> None:
    record = Record({f"{n}.py": Cost({"default": 40.0, "ci": 9.0}) for n in range(10)}, 0.03)
    slow = {file: Cost({"default": 80.0}) for file in record.files}
    assert durations.totals(durations.levelled(slow, record))["default"] == 400.0
    slow["3.py"] = Cost({"default": 480.0})
    assert list(durations.beyond(durations.levelled(slow, record), durations.SLACK))
    fast = {file: Cost({"default": 20.0}) for file in record.files}
    assert durations.levelled(fast, record) == fast


def test_a_measured_tier_replaces_its_entry(tmp_path: Path) -> None:
    path = tmp_path / "tests" / "durations.json"
    path.parent.mkdir()
    (tmp_path / HERE).touch()
    tests = {
        f"{HERE}::a": ("default", 0.2),
        f"{HERE}::b": ("ci", 7.0),
        "tests/gone.py::c": ("ci", 1),
    }
    write(log(tests), path)
    assert read(path).files == {HERE: Cost({"default": 0.2, "ci": 7.0}, {"b": 7.0})}
    write(log({f"{HERE}::slow": ("slow", 60.0)}, tiers=["slow"]), path)
    both = Cost({"default": 0.2, "ci": 7.0, "slow": 60.0}, {"b": 7.0, "slow": 60.0})
    assert read(path).files == {HERE: both}
    write(log({f"{HERE}::b": ("default", 15.0)}, work=0.06), path)
    assert read(path).files[HERE].tiers == {"default": 7.5, "slow": 60.0}
    assert read(path).work_seconds == 0.03  # the record stays one of its first machine


def test_what_is_said_of_a_run() -> None:
    record = Record({HERE: Cost({"default": 10.0, "ci": 5.0})}, 0.03)
    files = {HERE: Cost({"default": 440.0, "ci": 840.0}), "tests/new.py": Cost({"default": 11.0})}
    assert list(durations.lacking(files, record)) == [
        "tests/new.py is not in tests/durations.json: make durations"
    ]
    assert list(durations.beyond(files)) == ["default: 451 s of processor time, 450 allowed"]
    assert not list(durations.beyond(files, durations.SLACK))
    files[HERE].tiers["ci"] = 850.0
    assert "default and ci: 1301 s of processor time, 1300 allowed" in durations.beyond(files)
    assert [line.partition(":")[0] for line in durations.off(files, record, ["default", "ci"])] == [
        "tests/new.py",
        HERE,
    ]
