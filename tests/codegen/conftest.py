"""The simulator's shim, as the targets' tests compile it; builds as ``compiling`` makes them."""

from tests.targets.compiling import compiled_once, no_host, soon
from tests.targets.conftest import shim

__all__ = ["compiled_once", "no_host", "shim", "soon"]
