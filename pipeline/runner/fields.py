"""Types for OmegaConf: of the library's dataclasses, and of ``_target_`` classes by their source.

To import the classes of one run takes seconds, PyTorch most of them; to read their source 0.04 s.
What it means is left to Python: annotations and names of bases are evaluated.
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
    """Return the type that OmegaConf checks of a field ``name`` that is annotated ``hint``.

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
    found = _module(root, module).value(name)
    return found if isinstance(found, dict) else None


class _Module(dict[str, Any]):
    """The names of the module ``name``, looked up when they are asked for: in its source, of which
    a class is its fields, or, where that is not in ``root``, in what is loaded."""

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._loaded = root, sys.modules.get(name)
        place = root / name.replace(".", "/")
        files = (place.with_suffix(".py"), place / "__init__.py")
        texts = [file.read_bytes() for file in files if file.is_file()]
        self._body = [node for text in texts for node in ast.parse(text).body]

    def value(self, source: str) -> Any:
        """Evaluate an expression; return ``Any`` where it needs what isn't loaded."""
        try:
            return eval(source, {}, self)
        except (AttributeError, NameError, TypeError):
            return Any

    def __missing__(self, name: str) -> Any:
        for node in self._body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return self._fields(node)
            if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
                return self.value(ast.unparse(node.value))
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if name == (alias.asname or alias.name):
                        return _module(self._root, str(node.module)).value(alias.name)
        if self._body:
            raise KeyError(name)  # a builtin, perhaps
        return getattr(self._loaded, name, Any)

    def _fields(self, node: ast.ClassDef) -> dict[str, Any]:
        bases = [self.value(ast.unparse(base)) for base in reversed(node.bases)]
        found = {
            key: kind for each in bases if isinstance(each, dict) for key, kind in each.items()
        }
        if any("dataclass" in ast.unparse(word) for word in node.decorator_list):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and "init=False" not in ast.unparse(line):
                    name, hint = map(ast.unparse, (line.target, line.annotation))
                    if not hint.startswith(("ClassVar", "KW_ONLY")):
                        found[name] = checkable(name, self.value(hint))
        return found


_module = cache(_Module)
