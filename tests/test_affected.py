"""Tests that a change reaches, and which of them go into a minute."""

from pathlib import Path

import pytest

from tests.affected import changed
from tests.programs import said

MODULE = """\
LIMIT = 3


def low(x):
    if x > LIMIT:
        return LIMIT
    return x


class Kept:
    both = low(2)
"""
FILES = {
    "pipeline/used.py": MODULE,
    "docs/page.md": "",
    "firmware/port.c": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    said(["git", *identity, *words], root)


def test_what_has_changed_since(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "All")
    git(root, "checkout", "-qb", "branch")
    (root / "docs/page.md").write_text("committed\n")
    git(root, "commit", "-qam", "One")
    (root / "pipeline/used.py").write_text(
        MODULE.replace("x > L", "x >= L").replace("\n\n\nc", "\nc")
    )
    (root / "pipeline/newer.py").write_text("")
    (root / "firmware/port.c").unlink()
    now = {"pipeline/used.py": [5, 7], "pipeline/newer.py": []}
    assert changed(root, "HEAD") == now
    assert changed(root, "main") == {**now, "docs/page.md": [1]}
    with pytest.raises(SystemExit, match=r"make check: git merge-base: .*nowhere"):
        changed(root, "nowhere")
