"""The record of what tests cost: how it is kept, and the limits that are checked by it."""

from pathlib import Path

from pipeline.home import ROOT
from tests import durations
from tests.durations import Cost, Record, read


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
