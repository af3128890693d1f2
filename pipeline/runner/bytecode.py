"""Bytecode for the copies of the code in runs' folders: compiled once, not by every stage again.

It lies with all that is kept between runs. Python compares it with the hash of the source that it
imports (PEP 552): whoever shares the folder, and whatever the clocks say, nothing else runs.
"""

from __future__ import annotations

import contextlib
import importlib.util
import py_compile
from collections.abc import Iterable
from pathlib import Path

from pipeline import home

FOLDER = "bytecode"
HEADER = 16
"""Bytes of a .pyc before its code: magic number, flags, and in the last 8 the source's hash."""


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
            if _hash(compiled) != importlib.util.source_hash(source.read_bytes()):
                checked = py_compile.PycInvalidationMode.CHECKED_HASH
                with contextlib.suppress(py_compile.PyCompileError):
                    py_compile.compile(
                        str(source), str(compiled), doraise=True, invalidation_mode=checked
                    )


def _hash(compiled: Path) -> bytes:
    """Of the source of which ``compiled`` was made; empty where there is none."""
    try:
        with compiled.open("rb") as stream:
            return stream.read(HEADER)[8:]
    except FileNotFoundError:
        return b""
