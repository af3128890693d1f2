"""Are the values in a tree of dataclasses of the types that its fields are annotated with?

Files and hand-written plans are looked at once with this; what follows may rely on the annotations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import repeat
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

LARGEST = 1 << 48
"""No integer is beyond it, so that sums and products of a few stay exact in 64 bits."""


def misfit(root: Any) -> str | None:
    """The first value found in the dataclass ``root`` that is not of its field's type; else None.

    Integers are no booleans and not beyond ``LARGEST``; floats are finite; a tuple is a tuple. What
    says that it ``checks_itself`` when it is made is not looked into again.
    """
    of_root: Any = type(root)
    first = root, of_root, _alternatives(of_root), of_root.__name__
    pending: list[Iterator[tuple[Any, Any, tuple[_Kind, ...], str]]] = [iter([first])]
    seen = set[int]()  # a plan names some parts in thousands of steps
    while pending:
        if (found := next(pending[-1], None)) is None:
            pending.pop()
            continue
        value, hint, kinds, where = found
        for chosen in kinds:
            if _fits(value, chosen):
                break
        else:
            name = getattr(hint, "__name__", str(hint)) if isinstance(hint, type) else str(hint)
            return f"{where} is {_brief(value)}, not {name}"
        if chosen.of is tuple:
            items = chosen.arguments
            if items[1:] == (...,):
                inner = _alternatives(items[0])
                if value and not (_INTEGER in inner and _all_small(value)):
                    alike = map(repeat, (items[0], inner, where))
                    pending.append(zip(reversed(value), *alike, strict=False))
                continue  # a table may have many cells
            if len(items) != len(value):
                return f"{where} has {len(value)} items, not {len(items)}"
            each = zip(value, items, strict=True)
            pending.append(iter([(v, item, _alternatives(item), where) for v, item in each]))
        elif value is not root and getattr(chosen.of, "checks_itself", False):
            continue
        elif (parts := _fields(chosen.of)) and id(value) not in seen:
            seen.add(id(value))
            pending.append(iter([(getattr(value, name), *kind) for name, *kind in parts]))
    return None


class _Kind(NamedTuple):
    """A hint that is no union: ``of`` is the type that values are of, or ``Literal``."""

    of: Any
    arguments: tuple[Any, ...]


_INTEGER = _Kind(int, ())


@cache
def _alternatives(hint: Any) -> tuple[_Kind, ...]:
    if get_origin(hint) in (Union, UnionType):
        return tuple(kind for each in get_args(hint) for kind in _alternatives(each))
    return (_Kind(get_origin(hint) or hint, get_args(hint)),)


def _fits(value: Any, kind: _Kind) -> bool:
    """Its parts aside."""
    if kind.of is int:
        return _small(value)
    if kind.of is float:
        return type(value) is float and math.isfinite(value)
    if kind.of is Literal:
        return type(value) is str and value in kind.arguments
    return type(value) is kind.of


def _small(value: Any) -> bool:
    return type(value) is int and -LARGEST <= value <= LARGEST


def _all_small(values: tuple[Any, ...]) -> bool:
    return set(map(type, values)) == {int} and -LARGEST <= min(values) <= max(values) <= LARGEST


@cache
def _fields(cls: Any) -> tuple[tuple[str, Any, tuple[_Kind, ...], str], ...]:
    """Name, hint, its alternatives, and what messages call it, of each field of a dataclass; none
    of other types."""
    if not (isinstance(cls, type) and is_dataclass(cls)):
        return ()
    hints = get_type_hints(cls)
    return tuple(
        (f.name, hints[f.name], _alternatives(hints[f.name]), f"{cls.__name__}.{f.name}")
        for f in fields(cls)
    )


def _brief(value: Any) -> str:
    text = type(value).__name__ if is_dataclass(value) or type(value) is tuple else repr(value)
    return text if len(text) < 40 else f"{text[:36]}…"
