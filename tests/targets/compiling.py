"""Builds of tests, sooner: compile what is alike once a session, and the native program beside a
firmware only where a test asks for it."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from pipeline.targets import toolchain, tools

INCLUDE = re.compile(rb'^\s*#\s*include\s+(?:"([^"]+)"|([A-Z_]+))', re.M)
PLAIN = tools.run


class Once:
    """Stand in for ``tools.run``: keep what compilers make, by command and all that they read."""

    def __init__(self, kept: Path) -> None:
        self.kept = kept

    def __call__(self, command: Sequence[str], folder: Path, doing: str) -> str:
        sources = [word for word in command if word.endswith(".c")]
        if not sources or "-o" not in command:
            return PLAIN(command, folder, doing)
        at = command.index("-o") + 1
        made = folder / command[at]
        key = hashlib.sha256(" ".join((*command[:at], *command[at + 1 :])).encode())
        for path in sorted(read(sources, folder)):
            key.update(path.read_bytes())
        kept = self.kept / key.hexdigest()
        if kept.exists():
            shutil.copy(kept, made)
            return ""
        said = PLAIN(command, folder, doing)
        shutil.copy(made, kept)
        return said


def read(sources: Sequence[str], folder: Path) -> set[Path]:
    """List ``sources`` and the files beside them that they include; for a macro, all of them."""
    found, left = set[Path](), [folder / source for source in sources]
    while left:
        path = left.pop()
        if path not in found and path.exists():
            found.add(path)
            for name, macro in INCLUDE.findall(path.read_bytes()):
                word = name.decode()
                left += path.parent.glob("*.h") if macro else (path.parent / word, folder / word)
    return found


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what was compiled once."""
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module")
def compiled_once(kept: Path) -> Iterator[None]:
    """Compile what is alike once, and native programs without optimizing."""
    flags = tuple(flag.replace("-O2", "-O0") for flag in toolchain.HOST.flags)
    host = replace(toolchain.HOST, flags=flags)
    with patch.object(tools, "run", Once(kept)), patch.object(toolchain, "HOST", host):
        yield


@pytest.fixture(scope="module")
def no_host() -> Iterator[None]:
    """Build no ``host`` beside a firmware: ``toolchain.build_host`` still does."""
    with patch.object(toolchain, "host_meanwhile", lambda generated, output: nullcontext()):
        yield
