"""Setup of all tests: their tiers (see CONTRIBUTING.md), and what each of them costs."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import explained
from tests.meter import Collector, Meter

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
"""NumPy's threads wait by turning: of a small test's processor time they take a third."""

sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Images for containers set it: each process that a test starts would compile all it imports."""

signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell starts what it runs in the background deaf to Ctrl-C, which tests send."""

settings.register_profile("loaded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded")

PATIENCE_SECONDS = 3600
"""pytest-timeout's for tests beyond the default tier: they may meet a loaded machine."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--check-durations",
        action="store_true",
        help="fail if what ran is not in tests/durations.json or takes more than its tier may",
    )
    parser.addoption("--only", metavar="FILE", help="run the tests and test files that FILE lists")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(explained)
    parallel = config.getoption("numprocesses", None)
    worker = hasattr(config, "workerinput")
    if worker or not parallel:
        config.pluginmanager.register(Meter())
    if not worker:
        config.pluginmanager.register(Collector(config))


gc.disable()  # while all is imported, looking for garbage finds none


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if listed := config.getoption("only"):
        names = set(Path(listed).read_text().splitlines())
        items[:] = [item for item in items if {item.nodeid, item.nodeid.split("::")[0]} & names]
    for item in items:
        marked = {marker.name for marker in item.iter_markers()}
        if marked & {"ci", "slow"} and "timeout" not in marked:
            item.add_marker(pytest.mark.timeout(PATIENCE_SECONDS))
