"""The mutants are small faults that compile, the same for a seed, from every area."""

import ast
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline.home import ROOT
from tests import mutants, mutate
from tests.mutants import AREAS, TEMPLATES, drawn, files, in_c, in_python
from tests.mutate import batches, ran, reaching, read, stands, table
from tests.reach import Reach

PYTHON = '''\
"""Not 1 < 2 here."""

def low(x: Literal[1], ys: list[int]) -> int:
    for y in ys:
        if not x + 1 < y:
            continue
        ys.append(max(y, 3))
    return x
'''
C = """\
/* a + b is not code */
#define SIZE (a + 1)
{# nor a < b #}
{% for n in range(0, 1) %}
  sum += x[{{ n + 1 }}] * y; // 1
  nn_store(to, sum);
{% endfor %}
"""


def test_of_python() -> None:
    found = {PYTHON[m.start : m.stop]: m.text for m in in_python("x.py", PYTHON)}
    assert found == {
        "not x + 1 < y": "(x + 1 < y)",
        "x + 1 < y": "(x + 1 <= y)",
        "x + 1": "(x - 1)",
        "1": "2",
        "continue": "pass",
        "ys.append(max(y, 3))": "pass",
        "max": "min",
        "3": "4",
    }
    texts = [m.text for m in in_python("x.py", PYTHON)]
    assert "(not (not x + 1 < y))" in texts  # of the same place as the first
    for mutant in in_python("x.py", PYTHON):
        ast.parse(mutant.applied(PYTHON))


def test_of_templates() -> None:
    found = {(C[m.start : m.stop], m.text) for m in in_c("x.c.j2", C)}
    assert found == {(" += ", " -= "), (" * ", " + "), ("nn_store(to, sum)", "")}


@pytest.mark.ci
def test_a_seed_draws_from_all_areas_and_an_edit_leaves_the_others_as_they_were_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = drawn(200, 7)
    gone = found[0].file
    monkeypatch.setattr(mutants, "files", lambda area: [f for f in files(area) if f != gone])
    after = drawn(200, 7)
    assert [m for m in found if m.file != gone] == [m for m in after if m in found]
    areas = Counter(mutant.area for mutant in found)
    assert areas == {**dict.fromkeys(AREAS, 16), TEMPLATES: 40}
    assert all(
        mutant.applied(source) != source
        for mutant in found
        for source in [(ROOT / mutant.file).read_text()]
    )


def test_narrow_tests_run_first_and_are_asked_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutate, "BATCHES_SECONDS", (1.0, 2.0))
    seconds = dict.fromkeys("abcde", 0.6)
    assert [batch for batch, _ in batches("abcdefg", seconds)] == [
        ["a", "b"],
        ["c", "d", "e", "f"],
        ["g"],
    ]


@pytest.mark.ci
def test_a_mutant_without_an_end_is_killed(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("while True: pass\n")
    assert ran(tmp_path, ["endless"], patience=1)[0] < 0
    (tmp_path / "ends.py").write_text(f"import sys; print({sys.maxsize}); sys.exit(3)\n")
    assert ran(tmp_path, ["ends"], patience=600) == (3, f"{sys.maxsize}\n")


def test_what_a_campaign_tries_again(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"mutant": "a", "killed": True, "by": "tests/x.py::gone"},
        {"mutant": "b", "killed": False, "all": False},
        {"mutant": "a", "killed": True, "by": "tests/x.py::there"},
        {"mutant": "a", "check": True},
        {"mutant": "c", "killed": True, "by": "no end"},
        {"mutant": "d", "killed": False, "all": True},
        {"mutant": "e", "killed": True, "by": "tests/x.py::gone"},
    ]
    (tmp_path / "log").write_text("\n".join(map(json.dumps, rows)))
    found = read(tmp_path / "log")
    assert [rows.index(row) for row in found] == [2, 1, 3, 4, 5, 6]
    campaign = [row for row in found if "killed" in row]
    tests = {"tests/x.py::there"}
    assert [stands(row, tests, True, False) for row in campaign] == [1, 0, 1, 1, 0]
    assert [stands(row, tests, False, False) for row in campaign] == [1, 1, 1, 1, 0]
    assert [stands(row, tests, False, True) for row in campaign] == [1, 0, 1, 0, 0]
    assert [stands(row, tests, True, True, same=["b"]) for row in campaign] == [1, 1, 1, 0, 0]


def test_mutants_meet_the_record_where_there_is_no_recording() -> None:
    mutant = next(in_python("tests/mutants.py", (ROOT / "tests/mutants.py").read_text()))
    own = "tests/test_mutants.py::test_of_python"
    tests = {"tests/mutants.py": {"": [own, "tests/gone.py::test"]}}
    assert reaching(mutant, Reach(tests=tests)) == [own]


def test_the_table_counts_and_names_survivors() -> None:
    rows = [
        {"mutant": "a", "area": "search", "killed": True, "reached_by": 4},
        {"mutant": "b", "area": "search", "killed": False, "reached_by": 5},
        {"mutant": "c", "area": TEMPLATES, "killed": False, "reached_by": 6},
    ]
    lines = list(table(rows, {"c": "the same bytes"}))
    assert "| search | 2 | 0 | 1 | 50.0% |" in lines and "| all | 3 | 1 | 1 | 50.0% |" in lines
    assert lines[-2:] == ["- b: survived 5 tests", "- c: the same bytes"]
