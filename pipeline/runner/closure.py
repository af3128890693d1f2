"""Which of the project's Python files a file reaches by import: what a stage depends on."""

from __future__ import annotations

import ast
import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from pipeline import home
from pipeline.artifacts import write_json
from pipeline.runner import store

PACKAGES = frozenset({"pipeline", "stages"})
DYNAMIC = {
    "pipeline/codegen/int8/operators/__init__.py": "pipeline/codegen/int8/operators",
    "pipeline/graph/graph.py": "pipeline/graph/operators",
    "pipeline/passes/__init__.py": "pipeline/passes",
    "pipeline/pruning/planner.py": "pipeline/strategies",
    "pipeline/strategies/others.py": "pipeline/strategies",
}
"""Files that import every module of a folder by listing it."""


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


def imports(root: Path, name: str, packages: frozenset[str] = PACKAGES) -> frozenset[str]:
    """The files of ``packages`` that the file ``name`` imports directly."""
    modules = _modules(digest(root, name), root / name)
    found = {file for module in modules for file in module_files(root, module, packages)}
    if name in DYNAMIC:
        found |= {path.relative_to(root).as_posix() for path in (root / DYNAMIC[name]).glob("*.py")}
    return frozenset(found)


def digest(root: Path, name: str) -> str:
    """The MD5 of the file ``name``."""
    path = f"{root}/{name}"
    status = os.stat(path)  # noqa: PTH116  fast
    return _digest(path, status.st_mtime_ns, status.st_size, status.st_ino)


@cache
def _digest(path: str, *_: int) -> str:
    return store.md5(Path(path))


@cache
def _modules(digest: str, path: Path) -> frozenset[str]:
    """Return what the file at ``path``, with the MD5 ``digest``, imports or takes from a module."""
    if digest not in _seen:
        known = _remembered()
        _seen[digest] = (
            known[digest] if digest in known else _imported(path.read_bytes(), path.name)
        )
    return frozenset(_seen[digest])


MEMORY = "imports.json"
"""Where runs keep it: the MD5 of a file's content → what the file imports."""

_seen: dict[str, list[str]] = {}
"""Of this process."""


@cache
def _remembered() -> dict[str, list[str]]:
    """What earlier runs left; what is none of it is left out."""
    try:
        found = json.loads((home.home() / MEMORY).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    kept = found.items() if isinstance(found, dict) else ()
    listed = {key: value for key, value in kept if isinstance(value, list)}
    return {k: v for k, v in listed.items() if all(isinstance(name, str) for name in v)}


def remember() -> None:
    """Keep for the next run what this one's files import: to parse them takes half a second."""
    if not _seen.keys() <= _remembered().keys():
        with contextlib.suppress(OSError):  # a full disk: what needs the room says so
            write_json(home.home() / MEMORY, _seen)


def _imported(source: bytes, name: str) -> list[str]:
    modules: set[str] = set()
    for node in _statements(ast.parse(source, filename=name)):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules.add(node.module)
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return sorted(modules)


@cache
def module_files(root: Path, module: str, packages: frozenset[str] = PACKAGES) -> tuple[str, ...]:
    """The files that importing ``module`` runs; empty when it is not in ``packages``."""
    parts = module.split(".")
    if parts[0] not in packages:
        return ()
    candidates = ["/".join(parts[: n + 1]) + "/__init__.py" for n in range(len(parts))]
    candidates.append("/".join(parts) + ".py")
    return tuple(name for name in candidates if os.path.isfile(f"{root}/{name}"))  # noqa: PTH113  fast


def target_file(target: str) -> str:
    """``pipeline.strategies.herringbone.Herringbone`` → ``pipeline/strategies/herringbone.py``."""
    return target.rpartition(".")[0].replace(".", "/") + ".py"


BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements that may run, inner ones too; expressions import nothing."""
    for name in BODIES:
        for node in getattr(tree, name, ()):
            if not (isinstance(node, ast.If) and _typing(node.test)):
                yield node
                yield from _statements(node)


def _typing(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))
