"""Tests that a change reaches, and which of them go into a minute."""

from pathlib import Path

import pytest

from tests.affected import changed, chosen, noticing
from tests.programs import said
from tests.reach import Reach

MODULE = """\
LIMIT = 3


def low(x):
    if x > LIMIT:
        return LIMIT
    return x


class Kept:
    @property
    def both(self):
        return low(2)
"""
FILES = {
    "pipeline/used.py": MODULE,
    "pipeline/new.py": "",
    "conf/board/uno.yaml": "",
    "docs/page.md": "",
    "firmware/port.c": "",
    "tests/test_a.py": "from pipeline import used\n",
    "tests/test_b.py": "from pipeline.new import x\n",
    "tests/test_c.py": 'BOARD = "board=uno"\nPAGE = "docs/page.md"\nPORT = "port.c"\n',
}
A, B, C = "tests/test_a.py::test_low[1]", "tests/test_a.py::test_low[2]", "tests/test_a.py::test_up"
RECORD = Reach(
    {A: 0.1, B: 0.2, C: 60.0},
    {"pipeline/used.py": {"low": [A, C], "Kept.both": [B], "": [B]}, "firmware/port.c": {"": [C]}},
)


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


@pytest.mark.parametrize(
    ("file", "lines", "expected"),
    [
        ("pipeline/used.py", [5], [A, C, B]),
        ("pipeline/used.py", [6, 13], [A, B, C]),
    ],
)
def test_who_notices(root: Path, file: str, lines: list[int], expected: list[str]) -> None:
    assert noticing(root, file, lines, RECORD) == expected


def test_what_goes_into_a_minute(root: Path) -> None:
    changes = {"pipeline/used.py": [5], "docs/page.md": [1], "tests/test_b.py": [1]}
    choice = chosen(root, changes, RECORD, {"tests/test_c.py": 7.0})
    assert choice.files == ["tests/test_b.py"] and choice.tests == [A, C, B]
    assert choice.left_out == ["tests/test_c.py", "tests/test_a.py"]
    assert choice.left_out_seconds == 12.0
    choice = chosen(root, {"pipeline/used.py": [5], "tests/test_a.py": []}, RECORD, {})
    assert (choice.files, choice.tests, choice.left_out) == (["tests/test_a.py"], [], [])
