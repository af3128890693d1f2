"""Builds that take less time."""

import pytest

from tests.targets.conftest import compiled_once, kept

__all__ = ["compiled_once", "kept"]


@pytest.fixture(scope="module", autouse=True)
def soon(compiled_once: None) -> None:
    """Build so."""
