"""Frozen dataclasses to JSON and back. Tuples become lists, classes are named by ``type``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pipeline.errors import ThimbleError


def encode(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        content = {f.name: encode(getattr(value, f.name)) for f in fields(value)}
        return {"type": type(value).__name__, **content}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encode(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"cannot encode {type(value).__name__}")


def decode(data: Any, classes: Mapping[str, type]) -> Any:
    """The inverse of ``encode``; only the given classes are made.

    Raises:
        ThimbleError: for an unknown class or fields that do not fit it.
    """
    if isinstance(data, list):
        return tuple(decode(item, classes) for item in data)
    if isinstance(data, dict):
        content = {key: decode(item, classes) for key, item in data.items() if key != "type"}
        if "type" not in data:
            return content
        kind = data["type"]
        if not isinstance(kind, str) or kind not in classes:
            raise ThimbleError(f"unknown type {str(kind)[:40]!r}: the file is of another version")
        try:
            return classes[kind](**content)
        except TypeError as error:
            raise ThimbleError(f"damaged {data['type']}: {error}") from None
    return data
