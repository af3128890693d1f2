"""A pytest plug-in: says of each failure what the test was about (seeds, graphs, plans, boards and
folders of C, as the test's own frames hold them), and the command that runs it again."""

import shlex
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.plan.vocabulary import Plan

NUMBERS = ("seed", "number", "case", "first")
SAID = 2000
"""Characters of what a failed command, such as a compiler, said."""
TITLE = "what this case is about"


def about(name: str, value: object) -> str:
    """A local variable in a few words, if it says which case this is."""
    match value:
        case Plan():
            return f"strategy {value.strategy} of {value.graph}"
        case Hardware():
            return f"board {value.name} ({value.core}, {value.part})"
        case Graph():
            return f"graph {value.name} of {len(value.operators)} operators"
        case int() | str() if name in NUMBERS or name.endswith("seed"):
            return f"{name} {value}"
        case Path() if (value / "model.c").is_file():
            return f"C in {value}"
    return ""


def told(info: pytest.ExceptionInfo[BaseException]) -> Iterator[str]:
    """Yield what the frames of test files hold, the innermost first, each thing once."""
    frames = [entry for entry in info.traceback if Path(entry.path).is_relative_to(ROOT / "tests")]
    for entry in reversed(frames):
        for name, value in entry.locals.items():
            if said := about(name, value):
                yield said


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and call.excinfo is not None:
        lines = [*dict.fromkeys(told(call.excinfo)), f"again: {again(item.nodeid)}"]
        if isinstance(error := call.excinfo.value, subprocess.CalledProcessError) and error.stderr:
            said = error.stderr if isinstance(error.stderr, str) else error.stderr.decode()
            lines = [said[:SAID], *lines]
        report.sections.append((TITLE, "\n".join(lines)))
    return report


def again(nodeid: str) -> str:
    """The command that runs one test, whatever its tier."""
    return f"python -m pytest -m '' {shlex.quote(nodeid)}"
