"""The record of what each test costs, tests/durations.json, and the limits of each tier.

Seconds are processor time, a test's own and its subprocesses', which hardly depend on what else the
machine does. Machines differ by two, so what is measured is scaled by a fixed piece of work that is
timed in the same run: the record holds seconds of the machine that it was made on. Machines differ
in what they are slow at, too (one starts processes at half the speed of another that counts as
fast), so a run is also held against what most files took when they were recorded. ``make
durations`` writes the record from the log of the last runs, which ``tests/meter.py`` keeps.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.home import ROOT

RECORD = Path(__file__).with_name("durations.json")
LOG = "thimble/durations"
"""Name of the log in pytest's cache."""
TIERS = ("default", "ci", "slow")
LIMITS_SECONDS = {("default",): 450.0, ("default", "ci"): 1300.0}
"""Processor time of `make test`, and of all that `.ci/run` runs, on the record's machine."""
SLACK = 1.25
"""Measured again, on another machine, a total can be this much above its limit."""
NAMED_SECONDS = 0.5
"""Tests that take as long are in the record by name; of the others, each file's sum."""
OFF_SECONDS = 2.0
"""A file that takes more than this, and than half of the record's figure, more or less is said."""


@dataclass
class Cost:
    """A file's cost: the sums of its tests in each tier, and its expensive tests by name."""

    tiers: dict[str, float] = field(default_factory=dict)
    tests: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.tiers.values())

    def add(self, test: str, tier: str, seconds: float) -> None:
        self.tiers[tier] = self.tiers.get(tier, 0.0) + seconds
        if seconds >= NAMED_SECONDS:
            self.tests[test] = seconds

    def written(self, before: Cost | None) -> dict[str, Any]:
        """As in the record; a figure that moved by less than a quarter stays as it was."""
        old = before or Cost()
        tiers = {tier: kept(old.tiers.get(tier), s) for tier, s in self.tiers.items()}
        tests = {test: kept(old.tests.get(test), s) for test, s in self.tests.items()}
        return {**tiers, **({"tests": dict(sorted(tests.items()))} if tests else {})}


@dataclass
class Record:
    """Each file's cost, and how long the fixed piece of work took on the same machine."""

    files: dict[str, Cost]
    work_seconds: float


def kept(before: float | None, now: float) -> float:
    """Seconds with two digits, so that measuring again changes little in the file."""
    if before is not None and abs(now - before) <= max(0.25 * before, 0.1):
        return before
    return float(f"{now:.2g}") if now >= 1 else round(now, 1)


def read(path: Path = RECORD) -> Record:
    """The record; without files when there is none yet."""
    content = json.loads(path.read_text()) if path.exists() else {}
    files = {
        file: Cost({tier: cost[tier] for tier in TIERS if tier in cost}, cost.get("tests", {}))
        for file, cost in content.get("files", {}).items()
    }
    return Record(files, content.get("work_seconds", 0.0))


def measured(log: Mapping[str, Any], record: Record) -> dict[str, Cost]:
    """Each file's cost by ``log``, in seconds of the record's machine."""
    work = statistics.median(log["work_seconds"])
    scale = (record.work_seconds or work) / work
    files: dict[str, Cost] = {}
    for name, (tier, seconds) in log["tests"].items():
        file, _, test = name.partition("::")
        files.setdefault(file, Cost()).add(test, tier, seconds * scale)
    return files


def levelled(files: Mapping[str, Cost], record: Record) -> dict[str, Cost]:
    """Divide by how many times its recorded cost the median file takes, where that is above one."""
    known = {file: record.files[file].tiers for file in files.keys() & record.files.keys()}
    before = {file: sum(known[file].get(tier, 0.0) for tier in files[file].tiers) for file in known}
    ratios = [files[file].total / s for file, s in before.items() if s >= OFF_SECONDS]
    factor = max(1.0, statistics.median(ratios or [1.0]))
    return {
        file: Cost({tier: s / factor for tier, s in cost.tiers.items()}, cost.tests)
        for file, cost in files.items()
    }


def write(log: Mapping[str, Any], path: Path) -> None:
    """Replace the tiers that were measured of each file; forget files that are no longer there."""
    before, root = read(path), path.parents[1]
    files = dict(before.files)
    for file, cost in measured(log, before).items():
        old = files.get(file, Cost())
        kept_tiers = {tier: old.tiers[tier] for tier in old.tiers if tier not in log["tiers"]}
        named = old.tests if kept_tiers else {}
        files[file] = Cost({**kept_tiers, **cost.tiers}, {**named, **cost.tests})
    content = {
        "work_seconds": before.work_seconds or round(statistics.median(log["work_seconds"]), 4),
        "files": {
            file: cost.written(before.files.get(file))
            for file, cost in sorted(files.items())
            if (root / file).is_file()
        },
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def totals(files: Mapping[str, Cost]) -> dict[str, float]:
    """Seconds of each tier."""
    return {tier: sum(cost.tiers.get(tier, 0.0) for cost in files.values()) for tier in TIERS}


def beyond(files: Mapping[str, Cost], slack: float = 1.0) -> Iterator[str]:
    """Lines that say which limits ``files`` pass by more than ``slack``."""
    seconds = totals(files)
    for tiers, limit in LIMITS_SECONDS.items():
        total = sum(seconds[tier] for tier in tiers)
        if total > limit * slack:
            yield f"{' and '.join(tiers)}: {total:.0f} s of processor time, {limit:.0f} allowed"


def lacking(files: Mapping[str, Cost], record: Record) -> Iterator[str]:
    """Lines that name what ran and is not in the record."""
    for file in sorted(files.keys() - record.files.keys()):
        yield f"{file} is not in tests/durations.json: make durations"


def off(files: Mapping[str, Cost], record: Record, tiers: list[str]) -> Iterator[str]:
    """Lines that name files whose cost is off from the record by half."""
    for file, cost in sorted(files.items()):
        known = record.files.get(file, Cost()).tiers
        before = sum(known.get(tier, 0.0) for tier in tiers)
        if abs(cost.total - before) > max(OFF_SECONDS, before / 2):
            yield f"{file}: {cost.total:.1f} s, {before:.1f} in the record"


def main() -> int:
    path = ROOT / ".pytest_cache" / "v" / LOG
    if not path.is_file():
        print("make durations: no log of a run is there; run .ci/run first", file=sys.stderr)
        return 1
    write(json.loads(path.read_text()), RECORD)
    return 0


if __name__ == "__main__":
    sys.exit(main())
