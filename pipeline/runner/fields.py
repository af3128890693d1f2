"""Types for OmegaConf: of the library's dataclasses, and of ``_target_`` classes by their source.

To import the classes of one run takes seconds, PyTorch most of them; to read their source 0.04 s.
What it means is left to Python: annotations are evaluated, dataclasses made of them.
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import omegaconf


def structured(library: type) -> type:
    """A dataclass with the fields of ``library``, its defaults, and types that OmegaConf knows.

    What has no default is ``omegaconf.MISSING``: each config must give it.
    """
    hints = get_type_hints(library)
    kinds = {name: checkable(name, hint, structured) for name, hint in hints.items()}
    parts = [
        (p.name, kinds[p.name], _default(p, kinds[p.name])) for p in dataclasses.fields(library)
    ]
    return dataclasses.make_dataclass(library.__name__, parts)


def checkable(name: str, hint: Any, within: Callable[[type], Any] = lambda _: Any) -> Any:
    """The type that OmegaConf checks of a field ``name`` that is annotated ``hint``.

    The words of a ``Literal`` become an Enum, tuples and sequences lists, mappings go by names;
    ``within`` makes what a dataclass is. What may have several types has ``Any``.
    """
    origin = get_origin(hint)
    inner = [each for each in get_args(hint) if each not in (NoneType, ...)]
    if origin is Literal:
        if all(isinstance(word, str) and word.isidentifier() for word in inner):
            return Enum(name.title().replace("_", ""), inner)
        return int if all(type(value) is int for value in inner) else Any
    if origin in (Union, UnionType):
        return checkable(name, inner[0], within) if len(inner) == 1 else Any
    if origin in (tuple, list, Sequence):
        alike = len(set(inner)) == 1
        return list[checkable(name, inner[0], within)] if alike else Any  # type: ignore[misc]
    if origin in (dict, Mapping):
        return dict[str, Any]
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return within(hint)
    return hint if hint in (int, float, bool, str) else Any


def _default(part: dataclasses.Field[Any], kind: Any) -> Any:
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return dataclasses.field(default_factory=kind)
    default = part.default
    if default is dataclasses.MISSING:
        return omegaconf.MISSING
    if isinstance(default, tuple):
        return dataclasses.field(default_factory=lambda: list(default))
    return kind[default] if isinstance(kind, type) and issubclass(kind, Enum) else default


def fields(root: Path, target: str) -> dict[str, Any] | None:
    """Name and type of the fields of the dataclass ``target``, its bases' first; None when there is
    no such class. A type is one that OmegaConf checks, ``Any`` where it can't."""
    module, _, name = target.rpartition(".")
    found = getattr(_module(root, module), name, None)
    if not dataclasses.is_dataclass(found):
        return None
    parts = [part for part in dataclasses.fields(found) if part.init]
    return {part.name: checkable(part.name, part.type) for part in parts}


@cache
def _module(root: Path, name: str) -> Any:
    """A module of the project by its source; another as far as it is loaded."""
    place = root / name.replace(".", "/")
    for file in (place.with_suffix(".py"), place / "__init__.py"):
        if file.is_file():
            return _Source(root, name, ast.parse(file.read_bytes(), filename=file.name).body)
    return _Source(root, name, []) if place.is_dir() else sys.modules.get(name, Any)


class _Source(dict[str, Any]):
    """The names of a module, each looked up in ``body`` when it is asked for."""

    def __init__(self, root: Path, module: str, body: list[ast.stmt]) -> None:
        self._root, self._module, self._body = root, module, body

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            return _module(self._root, f"{self._module}.{name}")

    def __missing__(self, name: str) -> Any:
        for node in self._body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return self.setdefault(name, self._class(node))
            if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
                return self.setdefault(name, self._value(node.value))
            if isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    if name == (alias.asname or alias.name.partition(".")[0]):
                        return self.setdefault(name, self._imported(node, alias))
        raise KeyError(name)  # a builtin, or what its source doesn't say

    def _imported(self, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> Any:
        if isinstance(node, ast.ImportFrom):
            return getattr(_module(self._root, node.module or ""), alias.name, Any)
        return _module(self._root, alias.name if alias.asname else alias.name.partition(".")[0])

    def _class(self, node: ast.ClassDef) -> type:
        named = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
        found: list[Any] = [self._value(base) for base in named]
        bases = tuple(b for b in found if isinstance(b, type) and dataclasses.is_dataclass(b))
        if not any("dataclass" in ast.unparse(word) for word in node.decorator_list):
            return type(node.name, bases, {})
        parts = [
            (ast.unparse(line.target), self._value(line.annotation), _field(ast.unparse(line)))
            for line in node.body
            if isinstance(line, ast.AnnAssign)
        ]
        return dataclasses.make_dataclass(node.name, parts, bases=bases)

    def _value(self, node: ast.expr) -> Any:
        """What the expression ``node`` comes to; ``Any`` where it needs what isn't loaded."""
        try:
            found = eval(compile(ast.Expression(node), self._module, "eval"), {}, self)
        except (AttributeError, NameError, TypeError):
            return Any
        return self._value(ast.parse(found, mode="eval").body) if isinstance(found, str) else found


def _field(source: str) -> Any:
    return dataclasses.field(init="init=False" not in source)
