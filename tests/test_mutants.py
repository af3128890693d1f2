"""Mutants compile, are the same for a seed and from every area; what a campaign says of them."""

import ast
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from pipeline.home import ROOT
from tests import mutants, mutate
from tests.mutants import AREAS, TEMPLATES, drawn, in_c, in_python
from tests.mutate import stands, table
from tests.programs import written
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
    found = list(in_python("x.py", PYTHON))
    assert {(PYTHON[m.start : m.stop], m.text) for m in found} == {
        ("not x + 1 < y", "(x + 1 < y)"),
        ("not x + 1 < y", "(not (not x + 1 < y))"),
        ("x + 1 < y", "(x + 1 <= y)"),
        ("x + 1", "(x - 1)"),
        ("1", "2"),
        ("continue", "pass"),
        ("ys.append(max(y, 3))", "pass"),
        ("max", "min"),
        ("3", "4"),
    }
    for mutant in found:
        ast.parse(mutant.applied(PYTHON))


def test_of_templates() -> None:
    found = {(C[m.start : m.stop], m.text) for m in in_c("x.c.j2", C)}
    assert found == {(" += ", " -= "), (" * ", " + "), ("nn_store(to, sum)", "")}


@pytest.mark.ci
def test_some_are_drawn_from_each_area() -> None:
    found = drawn(200, 7)
    areas = Counter(mutant.area for mutant in found)
    assert areas == {**dict.fromkeys(AREAS, 16), TEMPLATES: 40}
    for mutant in found:
        source = (ROOT / mutant.file).read_text()
        assert mutant.applied(source) != source


def test_an_edit_leaves_the_others_as_they_were_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    file, read = "pipeline/measure.py", mutants._read
    monkeypatch.setattr(mutants, "files", lambda area: [file] if area == AREAS[0] else [])
    found = {mutant.name for mutant in drawn(200, 7)}
    new = read(file).replace("\n\n\ndef ", "\n\n\nX = 1 < 2\n\n\ndef ", 1)
    monkeypatch.setattr(mutants, "_read", lambda _: new)
    mutants.of.cache_clear()
    mutants._spans.cache_clear()
    assert len(found) == 16 and len(found - {mutant.name for mutant in drawn(200, 7)}) <= 3
    mutants._spans.cache_clear()
    mutants.of.cache_clear()


@pytest.mark.ci
def test_a_mutant_without_an_end_is_killed(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("while True: pass\n")
    assert mutate.ran(tmp_path, ["endless"], patience=1)[0] < 0
    (tmp_path / "ends.py").write_text(f"import sys; print({sys.maxsize}); sys.exit(3)\n")
    assert mutate.ran(tmp_path, ["ends"], patience=600) == (3, f"{sys.maxsize}\n")


FILE = "tests/mutants.py"
MUTANT = next(in_python(FILE, (ROOT / FILE).read_text()))
NAMES = [f"tests/test_mutants.py::test_of_python[{number}]" for number in range(20)]
RECORD = Reach(dict.fromkeys(NAMES, 25.0), {FILE: {"": [*NAMES, "tests/gone.py::test"]}})


@pytest.mark.parametrize(
    ("ends", "found"),
    [
        (["0", "5", f"1 \nERROR {NAMES[4]} - x\nFAILED"], {"killed": True, "by": NAMES[4]}),
        (["0", "-24 Killed"], {"killed": True, "by": "no end"}),
        (["2 no tests"], {"killed": True, "by": "exit 2"}),
        (["0", "0", "5", "0"], {"killed": False}),
    ],
)
def test_a_mutant_meets_the_tests_of_its_place_until_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: list[str], found: dict[str, object]
) -> None:
    source = (ROOT / FILE).read_text()
    copy = written(tmp_path / "copy", {FILE: source})
    left, met = iter(ends), list[list[str]]()

    def ran(folder: Path, command: list[str], patience: float) -> tuple[int, str]:
        assert (folder / FILE).read_text() == MUTANT.applied(source)
        met.append((tmp_path / "copy-only").read_text().splitlines())
        code, _, said = next(left).partition(" ")
        return int(code), said

    monkeypatch.setattr(mutate, "ran", ran)
    row = mutate.tried(copy, MUTANT, RECORD)
    assert found.items() <= row.items() and row["reached_by"] == 20 and not row["all"]
    assert met == [NAMES[:1], NAMES[1:4], NAMES[4:16], NAMES[16:]][: len(ends)]
    assert (copy / FILE).read_text() == source


def test_a_mutant_is_tried_again_where_it_may_end_otherwise() -> None:
    killed = {"mutant": "m", "killed": True, "by": NAMES[0]}
    assert stands(killed, NAMES, True, False) and not stands(killed, NAMES[1:], True, False)
    assert stands(killed | {"by": "no end"}, [], whole=True, survivors=True)
    alive = {"mutant": "m", "killed": False, "all": False}
    assert stands(alive, [], whole=False, survivors=False)
    assert not stands(alive, [], whole=True, survivors=False)
    assert not stands(alive, [], whole=False, survivors=True)
    assert stands(alive, [], whole=True, survivors=True, same=["m"])


def test_the_score_is_of_the_last_try_and_without_what_changes_nothing(tmp_path: Path) -> None:
    tries = [("a", False), ("b", False), ("same", False), ("c", True), ("a", True)]
    more = {"area": "plan", "reached_by": 7}
    rows = [{"mutant": name, "killed": killed, **more} for name, killed in tries]
    rows.append({"mutant": "a", "check": False})
    written(tmp_path, {"rows": "\n".join(map(json.dumps, rows))})
    read = [row for row in mutate.read(tmp_path / "rows") if "killed" in row]
    lines = list(table(read, {"same": "why", "c": "not so"}))
    assert "| plan | 4 | 1 | 2 | 66.7% |" in lines and "| all | 4 | 1 | 2 | 66.7% |" in lines
    assert lines[-2:] == ["- b: survived 7 tests", "- same: why"]
