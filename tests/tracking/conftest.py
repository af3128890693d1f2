from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runner.project import Project
from tests.tracking.database import trackers
from tests.waiting import until


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "project")
    yield made
    until(lambda: not trackers(made.root))  # nothing of a test outlives it
