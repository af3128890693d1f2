"""Builds of tests, sooner."""

from tests.targets.conftest import compiled_once, kept, no_host

__all__ = ["compiled_once", "kept", "no_host"]
