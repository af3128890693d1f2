"""Mutants compile, are the same for a seed and from every area; what a campaign says of them."""

import ast
import sys
from collections import Counter
from pathlib import Path

import pytest

from pipeline.home import ROOT
from tests import mutants, mutate
from tests.mutants import AREAS, TEMPLATES, drawn, files, in_c, in_python
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
def test_a_seed_draws_from_all_areas_and_an_edit_leaves_the_others_as_they_were_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = drawn(200, 7)
    gone = found[0].file
    monkeypatch.setattr(mutants, "files", lambda area: [f for f in files(area) if f != gone])
    assert [m for m in found if m.file != gone] == [m for m in drawn(200, 7) if m in found]
    areas = Counter(mutant.area for mutant in found)
    assert areas == {**dict.fromkeys(AREAS, 16), TEMPLATES: 40}
    for mutant in found:
        source = (ROOT / mutant.file).read_text()
        assert mutant.applied(source) != source


@pytest.mark.ci
def test_a_mutant_without_an_end_is_killed(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text("while True: pass\n")
    assert mutate.ran(tmp_path, ["endless"], patience=1)[0] < 0
    (tmp_path / "ends.py").write_text(f"import sys; print({sys.maxsize}); sys.exit(3)\n")
    assert mutate.ran(tmp_path, ["ends"], patience=600) == (3, f"{sys.maxsize}\n")


def test_mutants_meet_the_record_where_there_is_no_recording() -> None:
    mutant = next(in_python("tests/mutants.py", (ROOT / "tests/mutants.py").read_text()))
    own = "tests/test_mutants.py::test_of_python"
    tests = {"tests/mutants.py": {"": [own, "tests/gone.py::test"]}}
    assert mutate.reaching(mutant, Reach(tests=tests)) == [own]
