"""Names in ONNX files: any bytes."""

from __future__ import annotations


def text(name: str | bytes) -> str:
    """Return a name of the file; protobuf leaves what is not UTF-8 as bytes."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def shown(name: str | bytes) -> str:
    """Return a name of the file, on one line."""
    return "".join(c if c.isprintable() else "?" for c in text(name))[:80]
