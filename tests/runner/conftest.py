from pathlib import Path

import pytest

from tests.runner.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """For commands that end before they do anything."""
    return Project(tmp_path_factory.mktemp("untouched") / "project")
