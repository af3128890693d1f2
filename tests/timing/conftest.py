"""Builds that take less time."""

import pytest

from tests.targets.compiling import compiled_once, kept, no_host

__all__ = ["compiled_once", "kept", "no_host"]


@pytest.fixture(scope="module", autouse=True)
def soon(compiled_once: None, no_host: None) -> None:
    """Build as ``compiling`` does."""
