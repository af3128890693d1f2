"""A pytest plug-in: records which lines of pipeline/ and stages/ each test reaches, in the commands
that it starts, too, and which other files of the project it opens.

    python -m pytest -p tests.recorder -n 2 -m "not slow"

It needs xdist's processes, in which coverage.py starts with the interpreter. ``tests/reach.py``
reads what it leaves in ``FOLDER``.
"""

import json
import os
import shutil
import sys

import coverage
import jinja2
import pytest

from pipeline.home import ROOT

FOLDER = ROOT / ".pytest_cache" / "reach"
TEST = "REACH_TEST"
"""Environment variable: the test that runs, or that started this process."""
CONFIG = f"""\
[run]
include = */pipeline/*,*/stages/*
omit = */site-packages/*,*/tests/*
parallel = true
data_file = {FOLDER}/lines
context = ${{{TEST}-}}
patch = _exit
disable_warnings = no-data-collected,module-not-imported,already-imported,trace-changed
[paths]
pipeline =
  {ROOT}/pipeline
  */pipeline
stages =
  {ROOT}/stages
  */stages
"""
OPENED = tuple(f"{ROOT}/{folder}/" for folder in ("firmware", "conf", "docs"))


class Controller:
    """Keeps what tests take."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        used = getattr(report, "cpu_seconds", 0.0)
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + used

    def pytest_sessionfinish(self) -> None:
        (FOLDER / "seconds.json").write_text(json.dumps(self.seconds))


class Worker:
    """Tells coverage.py which test runs, and notes the files that it opens."""

    def __init__(self) -> None:
        self.opened: dict[str, set[str]] = {}
        self.names: set[str] = set()
        sys.addaudithook(self._audit)
        load = jinja2.Environment._load_template  # opens a file at its first use alone

        def noted(environment: jinja2.Environment, *args: object) -> jinja2.Template:
            template = load(environment, *args)
            self._note(template.filename)
            return template

        jinja2.Environment._load_template = noted

    def _audit(self, event: str, args: tuple[object, ...]) -> None:
        if event == "open":
            self._note(args[0])

    def _note(self, name: object) -> None:
        if isinstance(name, str) and name.startswith(OPENED):
            self.names.add(os.path.relpath(name, ROOT))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        os.environ[TEST] = nodeid
        self.names = self.opened.setdefault(nodeid, set())
        if running := coverage.Coverage.current():
            running.switch_context(nodeid)

    def pytest_sessionfinish(self) -> None:
        if running := coverage.Coverage.current():
            running.stop()
            running.save()
        found = {test: sorted(names) for test, names in self.opened.items() if names}
        (FOLDER / f"opened-{os.getpid()}.json").write_text(json.dumps(found))


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Worker())
        return
    if not config.getoption("numprocesses", None):
        raise pytest.UsageError("tests.recorder needs -n 2: coverage.py starts with the workers")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (FOLDER / "rc").write_text(CONFIG)
    os.environ["COVERAGE_PROCESS_START"] = str(FOLDER / "rc")
    config.pluginmanager.register(Controller())
