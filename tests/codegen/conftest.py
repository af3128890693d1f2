"""Builds that take less time; the simulator's shim, as the targets' tests compile it."""

import pytest

from tests.targets.conftest import compiled_once, kept, no_host, shim

__all__ = ["compiled_once", "kept", "no_host", "shim"]


@pytest.fixture(scope="module", autouse=True)
def soon(compiled_once: None, no_host: None) -> None:
    """Build so."""
