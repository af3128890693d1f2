"""The simulator's shim, as the targets' tests compile it."""

from tests.targets.conftest import shim

__all__ = ["shim"]
