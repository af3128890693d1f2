"""One module a family of operators: each writes the calls of its kernels (``pipeline.kernels``).

A module's ``WRITERS`` says which, by the kernels' names.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from importlib import import_module

from pipeline.codegen.int8.job import Job


def writers() -> dict[str, Callable[[Job], None]]:
    """Collect the writers of all modules in this folder, by the name of the kernel."""
    found = dict[str, Callable[[Job], None]]()
    for module in pkgutil.iter_modules(__path__):
        found |= getattr(import_module(f"{__name__}.{module.name}"), "WRITERS", {})
    return found
