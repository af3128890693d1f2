"""A finished run of the real project on its smallest data set and training."""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipeline.home import ROOT
from tests.runner import parent
from tests.runner.project import clean_environment

BARE = ("tracking=none", "output=json")
SMALL = ("data=synthetic", "train=smoke", "target.images=3", *BARE)


@dataclass(frozen=True)
class Project:
    """The real project, started in ``folder``, keeping its cache in ``folder``/home."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        return {**clean_environment(), "THIMBLE_HOME": str(self.folder / "home")}

    def run(self, *args: str, given: tuple[str, ...] = SMALL, codes: tuple[int, ...] = (0,)) -> Any:
        """The JSON of ``python run.py`` with what is ``given`` and ``args``."""
        words = [sys.executable, ROOT / "run.py", *given, *args]
        done = parent.run(words, cwd=self.folder, env=self.env)
        assert done.returncode in codes and done.stdout.count("\n") == 1, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Shared by the test processes: the second to ask finds the first's cache, or waits for it."""
    if not shutil.which("avr-gcc"):
        pytest.skip("needs avr-gcc: make setup")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "small"
    folder.mkdir(exist_ok=True)
    return Project(folder)
