"""A frozen dataclass of the library, as one whose fields OmegaConf checks."""

from __future__ import annotations

from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from enum import Enum
from typing import Any, Literal, get_args, get_origin, get_type_hints

import omegaconf


def structured(library: type) -> type:
    """A dataclass with the fields of ``library``, its defaults, and types that OmegaConf knows.

    The words of a ``Literal`` become an Enum, tuples lists, and dataclasses within are treated
    alike. What has no default is ``omegaconf.MISSING``: each config must give it.
    """
    kinds = {name: _kind(name, hint) for name, hint in get_type_hints(library).items()}
    parts = [(p.name, kinds[p.name], _default(p, kinds[p.name])) for p in fields(library)]
    return make_dataclass(library.__name__, parts)


def _kind(name: str, hint: Any) -> Any:
    """The type for OmegaConf of a field ``name`` that is annotated ``hint``."""
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return Enum(name.title().replace("_", ""), arguments)
    if get_origin(hint) is tuple:
        return list[_kind(name, arguments[0])]  # type: ignore[misc]
    return structured(hint) if isinstance(hint, type) and is_dataclass(hint) else hint


def _default(part: Field[Any], kind: Any) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        return field(default_factory=kind)
    default = part.default
    if default is MISSING:
        return omegaconf.MISSING
    if isinstance(default, tuple):
        return field(default_factory=lambda: list(default))
    return kind[default] if isinstance(kind, type) and issubclass(kind, Enum) else default
