"""A frozen dataclass of the library, as one whose fields OmegaConf checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import omegaconf


def structured(library: type) -> type:
    """A dataclass with the fields of ``library``, its defaults, and types that OmegaConf knows.

    What has no default is ``omegaconf.MISSING``: each config must give it.
    """
    hints = get_type_hints(library)
    kinds = {name: checkable(name, hint, structured) for name, hint in hints.items()}
    parts = [(p.name, kinds[p.name], _default(p, kinds[p.name])) for p in fields(library)]
    return make_dataclass(library.__name__, parts)


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
    if isinstance(hint, type) and is_dataclass(hint):
        return within(hint)
    return hint if hint in (int, float, bool, str) else Any


def _default(part: Field[Any], kind: Any) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        return field(default_factory=kind)
    default = part.default
    if default is MISSING:
        return omegaconf.MISSING
    if isinstance(default, tuple):
        return field(default_factory=lambda: list(default))
    return kind[default] if isinstance(kind, type) and issubclass(kind, Enum) else default
