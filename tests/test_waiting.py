"""Tests wait for events: on a machine that does twenty other things, a time proves nothing."""

import re

import pytest

from pipeline.home import ROOT

TIMED = (
    r"\.(communicate|wait|join|result)\(timeout=",
    r"\.(wait|join)\([1-9]",
    r"time\.(monotonic|perf_counter|time)\(\) *(-|<|>)",
    r"\bdeadline = ",
)
"""A limit on real time; processor time, ``time.process_time()``, may have one."""
MEASURED = {f"tests/{n}.py" for n in ("runner/test_kills", "bench", "mutate", "test_waiting")}
"""Files in which the time of parts of a run tells when to kill it, or is a result, no more."""
FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py"))


@pytest.mark.parametrize("pattern", TIMED)
def test_no_test_has_a_limit_on_real_time(pattern: str) -> None:
    found = [
        f"{file}:{number}: {line.strip()}"
        for file in FILES
        if file not in MEASURED
        for number, line in enumerate((ROOT / file).read_text().splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert not found, "wait with until() of tests/waiting.py"
