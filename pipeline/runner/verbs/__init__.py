"""Run what the command does besides runs, ``python run.py VERB …``: each module is a verb."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence

from pipeline.errors import ThimbleError


def names() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]


def spoken(words: Sequence[str]) -> bool:
    """Check that the command line ``words`` begins with a verb, and not with an override."""
    return bool(words) and words[0].isidentifier()


def run(words: Sequence[str]) -> int:
    """Call ``run`` of the verb's module with the words behind it, and return its exit code.

    Raises:
        ThimbleError: there is no such verb.
    """
    if words[0] not in names():
        commands = ", ".join(names())
        raise ThimbleError(f"{words[0]}: not understood, write key=value; commands are {commands}")
    code: int = importlib.import_module(f"{__name__}.{words[0]}").run(words[1:])
    return code
