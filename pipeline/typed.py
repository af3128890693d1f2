"""Are the values in a tree of dataclasses of the types that its fields are annotated with?

Files and hand-written plans are looked at once with this; what follows may rely on the annotations.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

LARGEST = 1 << 48
"""No integer is beyond it, so that sums and products of a few stay exact in 64 bits."""


def misfit(root: Any) -> str | None:
    """The first value found in the dataclass ``root`` that is not of its field's type; else None.

    Integers are no booleans and not beyond ``LARGEST``; floats are finite; a tuple is a tuple.
    """
    pending: list[tuple[Any, Any, str]] = [(root, type(root), type(root).__name__)]
    while pending:
        value, hint, where = pending.pop()
        chosen = _chosen(value, hint)
        if chosen is None:
            name = getattr(hint, "__name__", str(hint)) if isinstance(hint, type) else str(hint)
            return f"{where} is {_brief(value)}, not {name}"
        if get_origin(chosen) is tuple:
            kinds = get_args(chosen)
            if kinds[-1] is int and kinds[1:] == (...,) and all(map(_small, value)):
                continue  # a table may have many cells
            each = (kinds[0],) * len(value) if kinds[1:] == (...,) else kinds
            if len(each) != len(value):
                return f"{where} has {len(value)} items, not {len(each)}"
            pending += ((v, k, where) for v, k in zip(value, each, strict=True))
        elif isinstance(chosen, type) and is_dataclass(chosen):
            hints = _hints(chosen)
            pending += (
                (getattr(value, name), kind, f"{chosen.__name__}.{name}")
                for name, kind in hints.items()
            )
    return None


def _chosen(value: Any, hint: Any) -> Any:
    """The alternative of ``hint`` that ``value`` is of, its parts aside, if there is one."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        found = (_chosen(value, kind) for kind in get_args(hint))
        return next((kind for kind in found if kind is not None), None)
    if origin is Literal:
        fits = type(value) is str and value in get_args(hint)
    elif origin is tuple:
        fits = type(value) is tuple
    elif hint is int:
        fits = _small(value)
    elif hint is float:
        fits = type(value) is float and math.isfinite(value)
    else:
        fits = type(value) is hint
    return hint if fits else None


def _small(value: Any) -> bool:
    return type(value) is int and -LARGEST <= value <= LARGEST


@cache
def _hints(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def _brief(value: Any) -> str:
    text = type(value).__name__ if is_dataclass(value) or type(value) is tuple else repr(value)
    return text if len(text) < 40 else f"{text[:36]}…"
