"""Bytecode for runs' folders is made once, is that of the source beside it, and is never needed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

from pipeline.runner import bytecode

Write = Callable[[str], Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THIMBLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # as in a stage
    return tmp_path / "home"


def written(folder: Path, text: str) -> str:
    (folder / "pipeline").mkdir(parents=True, exist_ok=True)
    (folder / "pipeline" / "one.py").write_text(text)
    return "pipeline/one.py"


def compiled(home: Path) -> Path:
    tag = Path(importlib.util.cache_from_source("one.py")).name
    return home / bytecode.FOLDER / "pipeline" / tag


def value(folder: Path) -> object:
    """That the module has as Python would import it in ``folder``."""
    loader = SourceFileLoader("one", str(folder / "pipeline" / "one.py"))
    code, found = loader.get_code("one"), dict[str, object]()
    assert code is not None
    exec(code, found)
    return found["value"]


def test_runs_share_it(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in ("first", "second"):
        name = written(tmp_path / run, "value = 1")
        bytecode.share(tmp_path / run, [name])
        made = compiled(home).stat()
        monkeypatch.setattr(bytecode, "write_bytes", None)  # for the second: not called
    assert compiled(home).stat() == made
    content = compiled(home).read_bytes()
    compiled(home).write_bytes(content.replace(b"value", b"VALUE"))
    with pytest.raises(KeyError):
        value(tmp_path / "second")  # so it is what Python takes


def test_of_another_source_it_is_not_taken(home: Path, tmp_path: Path) -> None:
    bytecode.share(tmp_path / "run", [written(tmp_path / "run", "value = 1")])
    written(tmp_path / "run", "value = 2")  # as long, in the same second
    assert value(tmp_path / "run") == 2
    bytecode.share(tmp_path / "run", ["pipeline/one.py"])
    assert compiled(home).read_bytes()[8:16] == importlib.util.source_hash(b"value = 2")


@pytest.mark.parametrize("left", [b"", b"cut short", b"\0" * 16])
def test_what_is_damaged_is_made_again(home: Path, tmp_path: Path, left: bytes) -> None:
    name = written(tmp_path / "run", "value = 1")
    bytecode.share(tmp_path / "run", [name])
    whole = compiled(home).read_bytes()
    compiled(home).write_bytes(left)
    bytecode.share(tmp_path / "run", [name])
    assert compiled(home).read_bytes() == whole


def test_what_is_no_python_is_left_to_python(home: Path, tmp_path: Path) -> None:
    bytecode.share(tmp_path / "run", [written(tmp_path / "run", "value =")])
    assert not compiled(home).exists()


def test_it_is_never_needed(home: Path, tmp_path: Path) -> None:
    home.write_text("no folder")
    bytecode.share(tmp_path / "run", [written(tmp_path / "run", "value = 1")])
    assert value(tmp_path / "run") == 1
