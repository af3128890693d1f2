"""The keys that a ``_target_`` class takes, and their types, read from its source.

Importing the class would run other people's code before a run has begun, and PyTorch takes a
second.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from pipeline.runner.closure import module_files

PLAIN = {"int": int, "float": float, "bool": bool, "str": str}
SEQUENCES = ("tuple", "Tuple", "list", "List", "Sequence")
MAPPINGS = ("Mapping", "dict", "Dict")
NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")


def fields(root: Path, target: str) -> dict[str, Any] | None:
    """Name and type of the fields of the dataclass ``target``, its bases' first.

    A type is one that OmegaConf checks: int, float, bool, str, an Enum of the names of a
    ``Literal``, lists of these, a mapping by names; anything else is ``Any``. None when there is
    no such class.
    """
    module, _, name = target.rpartition(".")
    found = _find(root, module, name)
    if found is None or not isinstance(found[1], ast.ClassDef):
        return None
    return dict(_fields(root, *found))


def _fields(root: Path, module: str, node: ast.AST) -> Iterator[tuple[str, Any]]:
    """As the dataclass decorator collects them: a class's own replace those of its bases."""
    assert isinstance(node, ast.ClassDef)
    for base in reversed(node.bases):
        found = _find(root, module, _dotted(base))
        if found and isinstance(found[1], ast.ClassDef):
            yield from _fields(root, *found)
    if "dataclass" not in [_last(_called(word)) for word in node.decorator_list]:
        return
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            annotation = _unquoted(item.annotation)
            if _last(annotation) not in NO_FIELDS and not _not_init(item.value):
                yield item.target.id, _type(root, module, annotation)


def _not_init(value: ast.expr | None) -> bool:
    """``field(init=False)``."""
    return isinstance(value, ast.Call) and any(
        word.arg == "init" and isinstance(word.value, ast.Constant) and not word.value.value
        for word in value.keywords
    )


def _type(root: Path, module: str, node: ast.expr) -> Any:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):  # X | None
        sides = [side for side in (node.left, node.right) if not _is_none(side)]
        return _type(root, module, sides[0]) if len(sides) == 1 else Any
    if isinstance(node, ast.Subscript):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _generic(root, module, _last(node), inner)
    if (name := _dotted(node)) in PLAIN:
        return PLAIN[name]
    found = _find(root, module, name)
    if found and isinstance(found[1], ast.Assign):  # Layout = Literal["slots", "contiguous"]
        return _type(root, found[0], found[1].value)
    return Any


def _generic(root: Path, module: str, name: str, inner: list[ast.expr]) -> Any:
    if name == "Literal":
        values = [item.value for item in inner if isinstance(item, ast.Constant)]
        if all(type(value) is int for value in values):
            return int  # the class says which
        words = [str(value) for value in values]
        return Enum("Choice", words) if all(word.isidentifier() for word in words) else Any
    if name == "Optional":
        return _type(root, module, inner[0])
    if name in SEQUENCES:
        kinds = {
            _type(root, module, item)
            for item in inner
            if not (isinstance(item, ast.Constant) and item.value is ...)
        }
        return list[kinds.pop()] if len(kinds) == 1 else Any  # type: ignore[misc]
    return dict[str, Any] if name in MAPPINGS else Any


def _find(root: Path, module: str, name: str) -> tuple[str, ast.AST] | None:
    """The module and the node that define ``name``, as seen in ``module``, inside the project."""
    head, _, rest = name.partition(".")
    for node in _body(root, module):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == head:
                    if not rest:
                        return _find(root, node.module, alias.name)
                    return _find(root, f"{node.module}.{alias.name}", rest)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                prefix = f"{alias.asname or alias.name}."
                if name.startswith(prefix):
                    return _find(root, alias.name, name.removeprefix(prefix))
        elif name in _defined(node):
            return module, node
    return None


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef):
        return [node.name]
    return [_dotted(item) for item in node.targets] if isinstance(node, ast.Assign) else []


@cache
def _body(root: Path, module: str) -> tuple[ast.stmt, ...]:
    """The statements of a module of the project; none of another's."""
    name = module.replace(".", "/")
    own = {f"{name}.py", f"{name}/__init__.py"}
    files = [file for file in module_files(root, module) if file in own]
    return tuple(ast.parse((root / files[0]).read_bytes(), filename=files[0]).body) if files else ()


def _unquoted(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return ast.parse(node.value, mode="eval").body
    return node


def _dotted(node: ast.expr) -> str:
    """``base.Strategy`` of that expression and of ``base.Strategy[int]``; "" of other ones."""
    if isinstance(node, ast.Subscript):
        return _dotted(node.value)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _called(node: ast.expr) -> ast.expr:
    """``dataclass`` of ``dataclass(frozen=True)``."""
    return node.func if isinstance(node, ast.Call) else node


def _last(node: ast.expr) -> str:
    return _dotted(node).rpartition(".")[2]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
