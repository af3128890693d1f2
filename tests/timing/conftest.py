"""Builds that take less time."""

from tests.codegen.conftest import compiled_once, kept, no_host, soon

__all__ = ["compiled_once", "kept", "no_host", "soon"]
