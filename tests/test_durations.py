"""The record of what tests cost: how it is kept, and the limits that are checked by it."""

from pathlib import Path

from pipeline.home import ROOT
from tests import durations
from tests.durations import Cost, Record, read, write

HERE = "tests/test_here.py"


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

    def measured(work: float, **tests: tuple[str, float]) -> Cost:
        tiers = ["slow"] if "slow" in tests else ["default", "ci"]
        named = {f"{HERE}::{name}": cost for name, cost in tests.items()}
        named["tests/gone.py::c"] = ("ci", 1.0)
        write({"tiers": tiers, "work_seconds": [work], "tests": named}, path)
        (cost,) = read(path).files.values()
        return cost

    first = measured(0.03, a=("default", 0.2), b=("ci", 7.0))
    assert first == Cost({"default": 0.2, "ci": 7.0}, {"b": 7.0})
    both = Cost({**first.tiers, "slow": 60.0}, {"b": 7.0, "slow": 60.0})
    assert measured(0.03, slow=("slow", 60.0)) == both
    assert measured(0.06, b=("default", 15.0)).tiers == {"default": 7.5, "slow": 60.0}
    assert measured(0.03, b=("default", 9.0)).tiers["default"] == 7.5  # not a quarter more
    assert read(path).work_seconds == 0.03  # the record stays one of its first machine


def test_what_is_said_of_a_run() -> None:
    record = Record({HERE: Cost({"default": 10.0, "ci": 5.0})}, 0.03)
    files = {HERE: Cost({"default": 440.0, "ci": 840.0}), "tests/new.py": Cost({"default": 11.0})}
    (said,) = durations.lacking(files, record)
    assert said == "tests/new.py is not in tests/durations.json: make durations"
    assert list(durations.beyond(files)) == ["default: 451 s of processor time, 450 allowed"]
    assert not list(durations.beyond(files, durations.SLACK))
    files[HERE].tiers["ci"] = 850.0
    assert "default and ci: 1301 s of processor time, 1300 allowed" in durations.beyond(files)
    new, here = durations.off(files, record, ["default", "ci"])
    assert new == "tests/new.py: 11.0 s, 0.0 in the record"
    assert here == f"{HERE}: 1290.0 s, 15.0 in the record"
    assert not list(durations.off({HERE: Cost({"default": 14.0})}, record, ["default"]))
