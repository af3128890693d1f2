"""A pytest plug-in: measures what each test costs, keeps it in pytest's cache, and says at the end
what each tier takes, which tests lack a marker, and which failed and passed on the same code."""

import hashlib
import resource
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests import durations

LIMIT_SECONDS = 8.0
"""Limit for a test without a marker: one that takes longer belongs behind ``ci`` or ``slow``."""
SAID_SECONDS = 30.0
"""A run that takes less says no totals."""
WORK_EVERY_SECONDS = 20.0
"""Processor time between two timings of the fixed piece of work."""


def used_seconds() -> float:
    """Processor time of this process and of the ended ones that it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def work_seconds() -> float:
    """Processor time of a fixed piece of work, about 30 ms."""
    start, total = time.process_time(), 0
    for number in range(300_000):
        total += number * number % 7
    return time.process_time() - start


class Meter:
    """Runs where the tests run: notes in each report what its phase took."""

    def __init__(self) -> None:
        self.mark = used_seconds()
        self.worked = -WORK_EVERY_SECONDS

    def pytest_runtest_logstart(self) -> None:
        self.mark = used_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[None]:
        report = yield
        marked = [tier for tier in durations.TIERS if item.get_closest_marker(tier)]
        report.tier = marked[-1] if marked else "default"
        now = used_seconds()
        report.cpu_seconds = now - self.mark
        if now - self.worked > WORK_EVERY_SECONDS:
            report.work_seconds, self.worked = work_seconds(), now
        self.mark = used_seconds()
        return report


class Collector:
    """Runs where the result is shown: adds up, keeps the log, says what is off."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.check = config.getoption("check_durations")
        self.seconds: dict[str, float] = {}
        self.tiers: dict[str, str] = {}
        self.work_seconds: list[float] = []
        self.failed: set[str] = set()
        self.unstable: list[str] = []
        self.files: dict[str, durations.Cost] = {}
        self.off: list[str] = []
        self.problems: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        used = getattr(report, "cpu_seconds", 0.0)  # none where the worker crashed: xdist's report
        self.seconds[name] = self.seconds.get(name, 0.0) + used
        self.tiers[name] = getattr(report, "tier", "default")
        self.work_seconds += [report.work_seconds] if hasattr(report, "work_seconds") else []
        if report.failed:
            self.failed.add(name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.seconds or not self.work_seconds:
            return
        log = self._log()
        record = durations.read(durations.RECORD)
        self.files = durations.levelled(durations.measured(log, record), record)
        if self.check:
            beyond = durations.beyond(self.files, durations.SLACK)
            self.problems = [*durations.lacking(self.files, record), *beyond]
            if self.problems and not session.exitstatus:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self.off = list(durations.off(self.files, record, log["tiers"]))

    def _log(self) -> dict[str, Any]:
        """The runs on the same code as this one's, this one included; kept in pytest's cache."""
        cache = getattr(self.config, "cache", None) if self._whole() else None
        before: dict[str, Any] = (cache and cache.get(durations.LOG, None)) or {}
        code = self._code() if cache else ""
        same = before if code and before.get("code") == code else {}
        failed = set(same.get("failed", []))
        again = failed & self.seconds.keys()
        self.unstable = sorted(
            (again - self.failed)
            | ((self.failed - failed) & same.get("tests", {}).keys())
            | set(same.get("unstable", []))
        )
        tests = {name: (self.tiers[name], seconds) for name, seconds in self.seconds.items()}
        every = {**same.get("tests", {}), **tests}
        kinds = {kind for kind, _ in every.values()}
        log = {
            "code": code,
            "tiers": [tier for tier in durations.TIERS if tier in kinds],
            "work_seconds": [*same.get("work_seconds", []), *self.work_seconds],
            "tests": every,
            "failed": sorted((failed - again) | self.failed),
            "unstable": self.unstable,
        }
        if cache:
            cache.set(durations.LOG, log)
        return log

    def _whole(self) -> bool:
        """Check whether whole files ran, as users run them; the recorder makes tests slow."""
        given = ("keyword", "only", "deselect", "lf")
        chosen = any(self.config.getoption(word, None) for word in given)
        chosen = chosen or self.config.pluginmanager.hasplugin("tests.recorder")
        return not chosen and not any("::" in word for word in self.config.args)

    def _code(self) -> str:
        """A hash of all that git would commit; empty without git."""
        read = hashlib.sha256()
        for words in ("rev-parse HEAD", "diff HEAD", "ls-files --others --exclude-standard"):
            done = subprocess.run(
                ["git", *words.split()], cwd=self.config.rootpath, capture_output=True, check=False
            )
            if done.returncode:
                return ""
            read.update(done.stdout)
        for name in done.stdout.decode().splitlines():
            path = self.config.rootpath / name
            read.update(path.read_bytes() if path.is_file() else b"")
        return read.hexdigest()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        long = [
            f"{seconds:5.1f} s  {name}"
            for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1])
            if seconds > LIMIT_SECONDS and self.tiers[name] == "default"
        ]
        total = durations.totals(self.files)
        sums = [", ".join(f"{tier} {seconds:.0f} s" for tier, seconds in total.items())]
        sums = sums if sum(total.values()) > SAID_SECONDS else []
        sections = {
            f"without a marker, above {LIMIT_SECONDS:g} s of processor time": long,
            "processor time of the record's machine": sums,
            "off from the record of durations by half": self.off if self.check else [],
            "durations": self.problems,
            "failed and passed on the same code": self.unstable,
        }
        for title, lines in sections.items():
            if lines:
                terminalreporter.section(title)
            for line in lines:
                terminalreporter.line(line)
