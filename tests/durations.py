"""What each test costs: seconds of processor time, its own and its subprocesses', which hardly
depend on what else the machine does. A pytest plug-in; ``make durations`` keeps what it measures in
tests/durations.json, by which ``make check`` chooses and CONTRIBUTING.md's limits are checked.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

RECORD = Path(__file__).with_name("durations.json")
LIMIT_SECONDS = 8.0
"""Of a test without a marker: one that takes longer belongs behind ``ci`` or ``slow``."""
NAMED_SECONDS = 0.5
"""Tests that take as long are in the record by name; of the others, each file's sum."""
TIERS = ("default", "ci", "slow")


@dataclass
class Cost:
    """Of one file: the sums of its tests in each tier, and its expensive tests by name."""

    tiers: dict[str, float] = field(default_factory=dict)
    tests: dict[str, float] = field(default_factory=dict)

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


def kept(before: float | None, now: float) -> float:
    """Seconds with two digits, so that measuring again changes little in the file."""
    if before is not None and abs(now - before) <= max(0.25 * before, 0.1):
        return before
    return float(f"{now:.2g}") if now >= 1 else round(now, 1)


def read(path: Path = RECORD) -> dict[str, Cost]:
    """The record: file -> cost; empty when there is none yet."""
    content = json.loads(path.read_text()) if path.exists() else {}
    return {
        file: Cost({tier: cost[tier] for tier in TIERS if tier in cost}, cost.get("tests", {}))
        for file, cost in content.items()
    }


def write(measured: Mapping[str, Cost], path: Path) -> None:
    """Replace the files that were measured; forget those that are no longer there."""
    before, root = read(path), path.parents[1]
    files = {file: cost for file, cost in {**before, **measured}.items() if (root / file).is_file()}
    content = {file: cost.written(before.get(file)) for file, cost in sorted(files.items())}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def used_seconds() -> float:
    """Processor time of this process and of the ended ones that it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


class Meter:
    """Runs where the tests run: notes in each report what its phase took."""

    def __init__(self) -> None:
        self.mark = used_seconds()

    def pytest_runtest_logstart(self) -> None:
        self.mark = used_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        now = used_seconds()
        report.cpu_seconds, self.mark = now - self.mark, now
        return report


class Collector:
    """Runs where the result is shown: adds up, names what is too slow, writes the record."""

    def __init__(self, keep: bool) -> None:
        self.keep = keep
        self.seconds: dict[str, float] = {}
        self.tiers: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        used = getattr(report, "cpu_seconds", 0.0)  # none where the worker crashed: xdist's report
        self.seconds[name] = self.seconds.get(name, 0.0) + used
        marked = [tier for tier in TIERS if tier in report.keywords]
        self.tiers[name] = marked[-1] if marked else "default"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        slow = {
            name: seconds
            for name, seconds in self.seconds.items()
            if seconds > LIMIT_SECONDS and self.tiers[name] == "default"
        }
        if slow:
            terminalreporter.section(
                f"without a marker, above {LIMIT_SECONDS:g} s of processor time"
            )
        for name, seconds in sorted(slow.items(), key=lambda item: -item[1]):
            terminalreporter.line(f"{seconds:5.1f} s  {name}")

    def pytest_sessionfinish(self) -> None:
        if self.keep:
            measured: dict[str, Cost] = {}
            for name, seconds in self.seconds.items():
                if self.tiers[name] == "slow":
                    continue
                file, _, test = name.partition("::")
                measured.setdefault(file, Cost()).add(test, self.tiers[name], seconds)
            write(measured, RECORD)
