"""Find the project's Python files that a file reaches by import: what a stage depends on."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = frozenset({"pipeline", "stages"})
DYNAMIC = {
    "pipeline/codegen/kernel_sets.py": (
        *(f"pipeline/codegen/{name}" for name in ("avr", "int4", "int8/operators", "thumb")),
        *(f"pipeline/codegen/cortex_m/{name}" for name in ("by_row", "operators")),
    ),
    "pipeline/graph/graph.py": ("pipeline/graph/operators",),
    "pipeline/passes/__init__.py": ("pipeline/passes",),
    "pipeline/pruning/planner.py": ("pipeline/strategies",),
    "pipeline/strategies/others.py": ("pipeline/strategies",),
}
"""Files that import every module of some folders by listing them."""


def closure(root: Path, files: Iterable[str], packages: frozenset[str] = PACKAGES) -> set[str]:
    """``files`` and everything of ``packages`` that they import, transitively, as paths relative
    to ``root``.

    Imports inside functions count; those under ``if TYPE_CHECKING`` do not, they never run.
    Importing a module runs the ``__init__.py`` of each of its packages, so these count too.
    """
    found: set[str] = set()
    waiting = list(files)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(imports(root, name, packages))
    return found


def imports(root: Path, name: str, packages: frozenset[str] = PACKAGES) -> set[str]:
    """Return the files of ``packages`` that the file ``name`` imports directly."""
    _, modules = _looked_at(root, name)
    found = {file for module in modules for file in module_files(root, module, packages)}
    for folder in DYNAMIC.get(name, ()):
        found |= {path.relative_to(root).as_posix() for path in (root / folder).glob("*.py")}
    return found


def digest(root: Path, name: str) -> str:
    """Return the MD5 of the file ``name``."""
    return _looked_at(root, name)[0]


def _looked_at(root: Path, name: str) -> tuple[str, frozenset[str]]:
    path = f"{root}/{name}"
    status = os.stat(path)  # noqa: PTH116  fast
    return _read(path, status.st_mtime_ns, status.st_size, status.st_ino)


@cache
def _read(path: str, *_: int) -> tuple[str, frozenset[str]]:
    """The file's MD5 and, of Python, the modules that it imports, or takes something from."""
    content = Path(path).read_bytes()
    modules = _imported(content.decode(errors="replace")) if path.endswith(".py") else ()
    return hashlib.md5(content, usedforsecurity=False).hexdigest(), frozenset(modules)


TYPING = re.compile(r"^([ \t]*)if (typing\.)?TYPE_CHECKING:.*\n(\1[ \t]+.*\n|[ \t]*\n)*", re.M)
IMPORT = re.compile(r"^[ \t]*(?:from +([\w.]+) +import *(\([^)]*\)|.*)|import +(.*))", re.M)

LINES = {"\\\n": " ", ";": "\n", ": import ": ":\nimport ", ": from ": ":\nfrom "}
"""Replacements that put each statement on a line of its own."""


def _imported(source: str) -> Iterator[str]:
    """Yield what lines of ``source`` import: to parse 500 files takes half a second, this 0.04.

    A line of a docstring may look like an import: a file too many changes a key too often, one
    too few would keep what is out of date.
    """
    if "TYPE_CHECKING" in source:
        source = TYPING.sub("", source)
    for before, after in LINES.items():
        source = source.replace(before, after)
    for module, names, modules in IMPORT.findall(source):
        if module:
            yield module
        for name in re.findall(r"[\w.]+", re.sub(r"#.*| as +\w+", "", names or modules)):
            yield f"{module}.{name}" if module else name


@cache
def module_files(root: Path, module: str, packages: frozenset[str] = PACKAGES) -> tuple[str, ...]:
    """Return the files that importing ``module`` runs; empty when it is not in ``packages``."""
    parts = module.split(".")
    if parts[0] not in packages:
        return ()
    candidates = ["/".join(parts[: n + 1]) + "/__init__.py" for n in range(len(parts))]
    candidates.append("/".join(parts) + ".py")
    return tuple(name for name in candidates if os.path.isfile(f"{root}/{name}"))  # noqa: PTH113  fast
