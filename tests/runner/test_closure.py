"""What a file imports by its lines is what it imports by its syntax, in the whole project."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.home import ROOT
from pipeline.runner import closure

FILES = [path for top in ("pipeline", "stages") for path in sorted((ROOT / top).rglob("*.py"))]


def parsed(tree: ast.AST) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.If) or "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from parsed(node)
        else:
            yield from (name for each in node.orelse for name in parsed(ast.Module([each], [])))


def read(source: str) -> set[str]:
    return set(closure._imported(source))


@pytest.mark.ci
def test_every_file_of_the_project() -> None:
    assert len(FILES) > 400
    for path in FILES:
        source = path.read_text()
        found, wanted = (
            {file for name in names for file in closure.module_files(ROOT, name)}
            for names in (read(source), parsed(ast.parse(source)))
        )
        itself = path.relative_to(ROOT).as_posix()  # as its docstring says, perhaps
        assert found | {itself} == wanted | {itself}, path


@pytest.mark.parametrize(
    "source",
    [
        "import a, b.c as d  # e\nimport f",
        "from a import (\n    b as c,  # d\n    e,\n)\nfrom f import(g)",
        "def f():\n\tfrom a.b import c; import d",
        "try: import a\nexcept ImportError: from b import c",
        "from a import b, \\\n    c\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a\n\n    from b import c\n"
        "else:\n    import d\nimport e\n",
        "class A:\n    if typing.TYPE_CHECKING: import a\n    import b\n",
        "import a\r\nfrom b import c\r\n",
    ],
)
def test_ways_to_write_it(source: str) -> None:
    assert read(source) == set(parsed(ast.parse(source)))


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "pipeline").mkdir()
    one = tmp_path / "pipeline" / "one.py"
    one.write_text("from pipeline import two")
    (tmp_path / "pipeline" / "two.py").write_text("")
    found = closure.closure(tmp_path, ["pipeline/one.py"])
    assert found == {"pipeline/one.py", "pipeline/two.py"}
    one.write_text("from pipeline import six")
    assert closure.closure(tmp_path, ["pipeline/one.py"]) == {"pipeline/one.py"}
