"""Bytecode for the copies of the code in runs' folders: compiled once, not by every stage again.

It lies with all that is kept between runs. Python compares it with the hash of the source that it
imports (PEP 552): whoever shares the folder, and whatever the clocks say, nothing else runs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import marshal
from collections.abc import Iterable
from pathlib import Path

from pipeline import home
from pipeline.artifacts import write_bytes

FOLDER = "bytecode"
HEADER = 16
"""Bytes of a .pyc before its code: magic number, flags, and in the last 8 the source's hash."""
CHECKED = (0b11).to_bytes(4, "little")
"""The flags of a .pyc whose hash Python compares with the source's."""


def share(folder: Path, names: Iterable[str]) -> None:
    """Have Python find bytecode for the modules ``names``, relative to ``folder``; without it, as
    on a full disk or for what is no Python, it would compile them."""
    with contextlib.suppress(OSError):
        for name in names:
            source = folder / name
            kept = home.home() / FOLDER / Path(name).parent
            if not (found := source.parent / "__pycache__").exists():
                kept.mkdir(parents=True, exist_ok=True)
                found.symlink_to(kept)
            compiled = kept / Path(importlib.util.cache_from_source(source.name)).name
            text = source.read_bytes()
            digest = importlib.util.source_hash(text)
            if _hash(compiled) != digest:
                with contextlib.suppress(SyntaxError, ValueError):
                    code = marshal.dumps(compile(text, str(source), "exec", dont_inherit=True))
                    header = importlib.util.MAGIC_NUMBER + CHECKED + digest
                    write_bytes(compiled, header + code)  # py_compile's may be cut short


def _hash(compiled: Path) -> bytes:
    """Of the source of which ``compiled`` was made; empty where there is none."""
    try:
        with compiled.open("rb") as stream:
            return stream.read(HEADER)[8:]
    except FileNotFoundError:
        return b""
