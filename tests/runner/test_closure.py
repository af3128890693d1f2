"""What files import is parsed once for all runs; a damaged memory of it is as good as none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.runner import closure


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """As in a new process, with a project of two files."""
    monkeypatch.setenv("THIMBLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(closure, "_seen", {})
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "one.py").write_text("from pipeline import two")
    (tmp_path / "pipeline" / "two.py").write_text("")
    forget()
    yield tmp_path / "home"
    forget()


def forget() -> None:
    for each in (closure._remembered, closure._modules):
        each.cache_clear()


def reached(root: Path) -> set[str]:
    return closure.closure(root, ["pipeline/one.py"])


def test_the_next_run_parses_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = reached(home.parent)
    assert first == {"pipeline/one.py", "pipeline/two.py"}
    closure.remember()
    forget()
    monkeypatch.setattr(closure, "_seen", {})
    monkeypatch.setattr(closure, "_imported", None)
    assert reached(home.parent) == first


def test_an_edited_file_is_parsed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached(home.parent)
    closure.remember()
    forget()
    monkeypatch.setattr(closure, "_seen", {})
    (home.parent / "pipeline" / "one.py").write_text("from pipeline import six")
    assert reached(home.parent) == {"pipeline/one.py"}
    closure.remember()
    forget()
    assert len(json.loads((home / closure.MEMORY).read_text())) == 1  # no more than was asked


@pytest.mark.parametrize("left", ["", "[]", "5", '{"%s": 5}', '{"%s": [5]}', '{"%s"', "[" * 99_999])
def test_a_damaged_memory_is_none(home: Path, left: str) -> None:
    home.mkdir()
    digest = hashlib.md5(b"from pipeline import two").hexdigest()
    (home / closure.MEMORY).write_text(left.replace("%s", digest))
    assert reached(home.parent) == {"pipeline/one.py", "pipeline/two.py"}
