"""Builds as ``compiling`` makes them."""

from tests.targets.compiling import compiled_once, no_host, soon

__all__ = ["compiled_once", "no_host", "soon"]
