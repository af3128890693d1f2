"""Tests that a change reaches, and which of them go into a minute."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import affected, reach
from tests.affected import changed, chosen, naming, noticing
from tests.durations import Cost, Record
from tests.programs import git, written
from tests.reach import Reach, Recording, reduced

pytest_plugins = ["pytester"]

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
NAMING = {"pipeline/used.py": "a", "pipeline/new.py": "b"}
NAMING |= dict.fromkeys(["conf/board/uno.yaml", "docs/page.md", "firmware/port.c"], "c")
"""The test file that names each."""
FILES = {
    **dict.fromkeys(NAMING, "line\n"),
    "pipeline/used.py": MODULE,
    "pytest.ini": "[pytest]\nmarkers =\n  ci\n  slow\n",
    "tests/test_a.py": "from pipeline import used\n",
    "tests/test_b.py": "from pipeline.new import x\n",
    "tests/test_c.py": 'BOARD = "board=uno"\nPAGE = "docs/page.md"\nPORT = "port.c"\n',
}
A, B, C = "tests/test_a.py::test_low", "tests/test_a.py::test_low[2]", "tests/test_a.py::test_up"
RECORD = Reach(
    {A: 0.1, B: 0.2, C: 60.0},
    {"pipeline/used.py": {"low": [A, C], "Kept.both": [B], "": [B]}, "firmware/port.c": {"": [C]}},
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path, FILES)


def commit(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "All")


def test_what_has_changed_since(root: Path) -> None:
    commit(root)
    git(root, "checkout", "-qb", "branch")
    (root / "docs/page.md").write_text("committed\n")
    git(root, "commit", "-qam", "One")
    after = git(root, "commit-tree", "-p", "main", "-m", "Main went on", "HEAD^{tree}")
    git(root, "branch", "-f", "main", after)
    text = MODULE.replace("x > L", "x >= L").replace("return LIMIT", "return 3")
    (root / "pipeline/used.py").write_text(text.replace("\n\n\nc", "\nc"))
    written(root, {"pipeline/newer.py": "", "pipeline/added.py": "two\nlines\n"})
    git(root, "add", "pipeline/added.py")
    (root / "firmware/port.c").unlink()
    now = {"pipeline/used.py": [5, 6, 7], "pipeline/newer.py": [], "firmware/port.c": [0]}
    now["pipeline/added.py"] = [1, 2]
    assert changed(root, "HEAD") == now
    assert changed(root, "main") == {**now, "docs/page.md": [1]}
    with pytest.raises(SystemExit, match=r"make check: git merge-base: .*nowhere"):
        changed(root, "nowhere")


def test_who_notices_a_change_and_which_files_name_it(root: Path) -> None:
    def found(file: str, *lines: int) -> list[str]:
        return noticing(root, file, lines, RECORD)

    assert found("pipeline/used.py", 5) == [A, C, B]
    assert found("pipeline/used.py", 6, 13) == [A, B, C]
    assert found("pipeline/used.py", 1) == [B]
    assert found("pipeline/new.py", 1) == []
    assert found("firmware/port.c", 1) == [C]
    assert {file: naming(root, file) for file in NAMING} == {
        file: [f"tests/test_{letter}.py"] for file, letter in NAMING.items()
    }


def test_what_goes_into_a_minute(root: Path) -> None:
    changes = {"pipeline/used.py": [5], "docs/page.md": [1], "tests/test_b.py": [1]}
    choice = chosen(root, changes, RECORD, {"tests/test_c.py": 7.0})
    assert choice.files == ["tests/test_b.py"] and choice.tests == [A, C, B]
    assert choice.left_out == ["tests/test_c.py", "tests/test_a.py"]
    assert (choice.seconds, choice.left_out_seconds) == (65.3, 12.0)
    choice = chosen(root, {"pipeline/used.py": [5], "tests/test_a.py": []}, RECORD, {})
    assert (choice.files, choice.tests, choice.left_out) == (["tests/test_a.py"], [], [])


def test_make_check_runs_what_is_chosen_and_fails_with_it(
    root: Path,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those marked ci, too, but no slow ones."""
    test = "import pytest  # pipeline.used\ndef test_low(): pass\n"
    test += "@pytest.mark.{}\ndef test_up(): assert False\n"
    costs = Record({"tests/test_a.py": Cost({"default": 60.0, "ci": 20.0})}, 0.03)
    monkeypatch.setattr(reach, "read", lambda: RECORD)
    monkeypatch.setattr(affected.durations, "read", lambda *_: costs)
    monkeypatch.setattr(affected, "ROOT", root)
    monkeypatch.chdir(root)
    real, ran = subprocess.run, []

    def run(command: list[str], **more: Any) -> Any:
        if command[0] == "git":
            return real(command, **more)
        done = pytester.runpytest("-p", "tests.conftest", *command[3:], "-n", "0")
        ran.append(done.parseoutcomes())
        return subprocess.CompletedProcess(command, done.ret)

    monkeypatch.setattr(subprocess, "run", run)
    (root / "tests/test_a.py").write_text(test.format("slow"))
    commit(root)
    assert affected.main("HEAD") == 0 and not ran
    (root / "pipeline/used.py").write_text(MODULE.replace("x > L", "x >= L"))
    assert affected.main("HEAD") == 0 and ran[0] == {"passed": 1, "deselected": 1}
    said = capsys.readouterr().out
    assert "1 files changed since HEAD: 0 test files and 3 other tests, 60 s of" in said
    assert "left out, for they take 80 s more: tests/test_a.py" in said
    (root / "tests/test_a.py").write_text(test.format("ci"))
    assert affected.main("main") == 1 and ran[1] == {"passed": 1, "failed": 1}


def test_the_record_has_tests_for_each_line_and_narrow_ones_first(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach, "ROOT", root)
    many = {f"tests/test_many.py::test[{n}]" for n in range(20)}
    lines = {5: {A, B, C, *many}, 6: {B, C}, 7: {A}, 4: {""}, 1: {C}}
    breadth = reach.Counter({A: 10, B: 20, C: 1000, **dict.fromkeys(many, 500)})
    seconds = dict.fromkeys([A, B, C, *many], 0.1)
    recording = Recording(seconds, {"pipeline/used.py": lines}, {"x.c": {C}}, breadth)
    found = reduced(recording)
    low = found.tests["pipeline/used.py"]["low"]
    assert low[:2] == [A, B] and low[-1] == C
    assert len(low) == 5  # two at most of one parametrised test
    assert found.tests["x.c"] == {"": [C]}
    assert recording.at("pipeline/used.py", 6) == [B, C]
    assert recording.at("pipeline/used.py", 4)[:2] == [A, B]  # nobody reaches it: its function
    assert recording.at("pipeline/used.py", 1)[:2] == [A, B]  # of no function: the file
    path = root / "reach.json"
    reach.write(found, path)
    assert reach.read(path) == found
