"""Which tests a change reaches, and which of them go into a minute."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pipeline.home import ROOT
from tests.affected import (
    UNKNOWN_SECONDS,
    Choice,
    all_tests,
    arguments,
    changed,
    choices,
    reached,
    within,
)
from tests.durations import Cost

FILES = {
    "pipeline/__init__.py": "",
    "pipeline/used.py": 'TEMPLATE = "model.c.j2"\n',
    "pipeline/templates/model.c.j2": "",
    "pipeline/other.py": "",
    "conf/board/uno.yaml": "",
    "docs/page.md": "",
    "docs/other.md": "",
    "firmware/port.c": "",
    "pyproject.toml": "",
    "tests/helper.py": "from pipeline.used import TEMPLATE\n",
    "tests/project.py": 'PROGRAM = "run.py"\n',
    "tests/a/conftest.py": "import pipeline.other\n",
    "tests/a/test_boards.py": 'BOARDS = "conf/board"\n',
    "tests/test_uses.py": "from tests.helper import TEMPLATE\n",
    "tests/test_runs.py": "from tests.project import PROGRAM\n",
    "tests/test_page.py": '"""docs/other.md says why."""\nPAGE = "docs/page.md"\n',
    "tests/test_pages.py": 'PAGES = "docs/*.md"\n',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("pipeline/used.py", {"runs", "uses"}),
        ("pipeline/other.py", {"boards", "runs"}),
        ("pipeline/templates/model.c.j2", {"runs", "uses"}),
        ("conf/board/uno.yaml", {"boards", "runs"}),
        ("firmware/port.c", {"runs"}),
        ("docs/page.md", {"page", "pages"}),
        ("docs/other.md", {"pages"}),
        ("tests/test_page.py", {"page"}),
        ("tests/helper.py", {"uses"}),
        ("tests/gone.py", set()),
        ("pyproject.toml", {"boards", "page", "pages", "runs", "uses"}),
    ],
)
def test_what_a_change_reaches(root: Path, change: str, expected: set[str]) -> None:
    found = reached(root, [change])
    assert {Path(file).stem.removeprefix("test_") for file in found} == expected


def test_what_has_changed_since(root: Path) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
        subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "All")
    git("checkout", "-qb", "branch")
    (root / "docs/page.md").write_text("committed")
    git("commit", "-qam", "One")
    (root / "pipeline/other.py").write_text("1\n")
    (root / "pipeline/new.py").write_text("")
    (root / "firmware/port.c").unlink()
    now = {"pipeline/other.py", "pipeline/new.py", "firmware/port.c"}
    assert changed(root, "HEAD") == now
    assert changed(root, "main") == {*now, "docs/page.md"}
    with pytest.raises(SystemExit, match=r"make check: git merge-base: .*nowhere"):
        changed(root, "nowhere")


RECORD = {
    "tests/long.py": Cost({"default": 12.0, "ci": 40.0}, {"test_a": 3.0, "test_b": 40.0}),
    "tests/short.py": Cost({"default": 1.0}),
}


def test_changed_tests_come_first_and_then_short_ones() -> None:
    found = choices([*RECORD, "tests/new.py"], RECORD)
    assert {(each.file, each.test) for each in found} == {
        ("tests/long.py", ""),
        ("tests/long.py", "test_a"),
        ("tests/long.py", "test_b"),
        ("tests/short.py", ""),
        ("tests/new.py", ""),
    }
    chosen, left_out = within(20.0, found, first=set())
    assert [(each.file, each.test) for each in chosen] == [
        ("tests/short.py", ""),
        ("tests/long.py", "test_a"),
        ("tests/new.py", ""),
        ("tests/long.py", ""),
    ]
    assert left_out == 40.0
    assert arguments(found, chosen) == [
        "tests/long.py",
        "tests/new.py",
        "tests/short.py",
        "--deselect=tests/long.py::test_b",
    ]
    chosen, left_out = within(10.0, found, first={"tests/long.py"})
    assert arguments(found, chosen) == ["tests/new.py", "tests/short.py", "tests/long.py::test_a"]
    assert left_out == pytest.approx(49.0, abs=1)
    assert within(0.5 + UNKNOWN_SECONDS, found, first={"tests/new.py"})[0][0].file == "tests/new.py"


def test_the_real_project() -> None:
    every = set(all_tests(ROOT))
    assert reached(ROOT, ["pipeline/graph/tensor.py"]) > {"tests/graph/test_graph.py"}
    assert "tests/graph/test_graph.py" not in reached(ROOT, ["pipeline/training/loop.py"])
    shim = reached(ROOT, ["firmware/simulators/simavr_shim.c"])
    assert {"tests/targets/test_simavr.py", "tests/runner/test_run.py"} <= shim < every
    assert reached(ROOT, ["tests/conftest.py"]) == every
    pages = {"tests/test_affected.py", "tests/test_support.py"}
    assert reached(ROOT, ["docs/support.md"]) == pages
    assert reached(ROOT, ["tests/durations.json"]) == {"tests/test_durations.py"}


def test_a_choice_is_whole_or_one_test() -> None:
    assert Choice(1.0, "a") < Choice(1.0, "a", "test") < Choice(2.0, "a")
