"""Rules that keep the project readable: who may import whom, how long a file is, one registry."""

import ast
import re
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter

import pytest
import yaml

from pipeline import config
from pipeline.errors import ThimbleError
from pipeline.home import PACKAGE, ROOT, STAGES
from pipeline.runner import closure
from pipeline.runner.fields import fields
from pipeline.runner.schema import CODE_GROUPS
from tests.programs import said

PLANS = {"graph", "kernels", "placement", "plan", "schedules", "search", "strategies"}
ALLOWED = {
    "graph": set(),
    "plan": {"graph"},
    "timing": {"graph", "plan"},
    "kernels": {"graph", "plan"},
    "placement": {"graph", "plan"},
    "schedules": {"graph", "kernels", "placement", "plan", "timing"},
    "search": {"graph", "kernels", "placement", "plan", "schedules"},
    "strategies": PLANS,
    "frontends": set(),
    "codegen": {"frontends", "graph", "kernels", "plan"},
    "report": {"graph", "plan", "timing"},
    "targets": {"codegen", "graph", "kernels", "plan"},
    "datasets": set(),
    "models": set(),
    "importers": {"graph", "models"},
    "machine": {"graph", "plan", "targets"},
    "packages": {"codegen", "frontends", "graph", "plan", "targets"},
    "passes": {"graph"},
    "quantize": PLANS - {"kernels", "placement"} | {"datasets", "importers", "models"},
    "training": {"datasets", "graph", "models", "quantize"},
    "pruning": PLANS - {"placement", "schedules", "search"}
    | {"datasets", "importers", "models", "passes", "quantize", "timing", "training"},
    "tracking": {"targets"},
    "runner": {"importers", "packages", "report", "targets", "timing", "tracking"},
}
"""Packages of pipeline/ and the others that each may import; modules beside them are for all."""

OUTSIDERS = {"hydra": "runner", "omegaconf": "runner", "dvc": "runner", "mlflow": "tracking"}
"""Libraries, and the only package that may import each."""


KINDS = ("*.py", "*.c", "*.h", "*.S", "*.j2")
"""Files that people write and read."""


def package(name: str) -> str:
    """Name the package of a file: ``plan`` of pipeline/plan/verify.py; "" directly in pipeline/."""
    parts = name.split("/")
    return parts[1] if len(parts) > 2 else ""


def sources(*patterns: str) -> list[str]:
    options = ("--cached", "--others", "--exclude-standard")
    listed = said(["git", "ls-files", *options, *patterns], ROOT)
    return [name for name in listed.splitlines() if (ROOT / name).is_file()]


def parsed(words: Iterable[str]) -> Iterator[tuple[str, ast.Module]]:
    """The Python files in which one of ``words`` is; others need not be parsed."""
    for name in sources("pipeline/*.py", "stages/*.py"):
        text = (ROOT / name).read_text()
        if any(word in text for word in words):
            yield name, ast.parse(text)


def test_no_files_import_each_other() -> None:
    imported = {name: closure.imports(ROOT, name) - {name} for name in sources("pipeline/*.py")}
    packages = {each for each in imported if each.endswith("__init__.py")}  # with what is in them
    arrows = {name: found - packages for name, found in imported.items()}
    TopologicalSorter(arrows).prepare()  # raises where they go in a circle


def test_imports_go_one_way() -> None:
    for name in sources("pipeline/*.py"):
        own, imported = package(name), closure.imports(ROOT, name) - {name}
        allowed = ALLOWED[own] | {own} if own else {"graph", "plan", "timing"}
        assert {package(file) for file in imported} - {""} <= allowed, name
        assert not [file for file in imported if file.startswith("stages/")], name
    for name, tree in parsed(OUTSIDERS):
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for library in {module.split(".")[0] for module in names} & OUTSIDERS.keys():
                assert package(name) == OUTSIDERS[library], f"{name} imports {library}"


SETS = {"avr", "cortex_m", "thumb"}


def test_sets_of_kernels_share_what_is_for_all_alone() -> None:
    for name in sources("pipeline/kernels/*/*.py", "pipeline/codegen/*/*.py"):
        folder = {name.split("/")[2]}
        imported = {file.split("/")[2] for file in closure.imports(ROOT, name) if package(file)}
        assert not folder & SETS or imported & SETS <= folder, name


def test_what_has_moved_is_where_it_says() -> None:
    for old, new in config.RENAMED.items():
        with pytest.raises(ThimbleError, match=re.escape(f"has moved: write {new}")):
            config.own_target({"_target_": old})
        assert fields(ROOT, config.own_target({"_target_": new})) is not None


VOCABULARY = {"pipeline.plan.vocabulary", "pipeline.plan.steps"}
STEPS = {"Compute", "Clear", "Finish", "Move", "Signal", "Wait", "Loop"}


def test_only_schedules_make_steps() -> None:
    """Others propose regions, or change steps that are there (``replace``)."""
    for name, tree in parsed(["vocabulary", "steps"]):
        made = steps_made(tree)
        assert not made or package(name) == "schedules", f"{name} makes {', '.join(sorted(made))}"


def steps_made(tree: ast.Module) -> set[str]:
    """Kinds of steps that are called by a name, or as an attribute of a module."""
    names = dict[str, str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in VOCABULARY:
            names |= {alias.asname or alias.name: alias.name for alias in node.names}
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = {names.get(f.id, "") for f in called if isinstance(f, ast.Name)}
    return STEPS & (found | {f.attr for f in called if isinstance(f, ast.Attribute)})


def test_long_calls_name_what_they_pass() -> None:
    for name, tree in parsed([""]):
        calls = [node.args for node in ast.walk(tree) if isinstance(node, ast.Call)]
        long = [each for each in calls if len(each) > 7 and ast.Starred not in map(type, each)]
        assert not long, f"{name}, line {long[0][0].lineno}: which of these is which?"


def test_files_are_short() -> None:
    written = [name for name in sources(*KINDS) if "/golden/" not in name]
    lengths = {name: len((ROOT / name).read_text().splitlines()) for name in written}
    assert lengths["run.py"] <= 120
    assert not {n: k for n, k in lengths.items() if n.startswith("stages/") and k > 80
                and not n.endswith("_main.py")}  # fmt: skip
    assert not {n: k for n, k in lengths.items() if k > 400}
    for name in sources("README.md"):
        assert len((ROOT / name).read_text().splitlines()) <= 120
    assert len((ROOT / ".pre-commit-config.yaml").read_text().split("- id:")) <= 6


NAMED = ["model", "data", "train", "prune", "quantize", "strategy", "hardware", "package"]


def test_every_option_names_a_class_and_every_stage_has_a_program() -> None:
    """The ``_target_`` in the YAML is the only registry; and its name is the file's."""
    for name in sources("conf/*.yaml"):
        node = yaml.safe_load((ROOT / name).read_text()) or {}
        group = "/".join(name.split("/")[1:-1])
        if group in CODE_GROUPS:
            assert fields(ROOT, config.own_target(node)) is not None, name
        if group in NAMED and list(node) != ["defaults"]:  # a chip is its common board
            assert node["name"] == name.split("/")[-1].removesuffix(".yaml")
    every = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    assert tuple(every) == ("code", *STAGES, PACKAGE)
    stages = {name: stage for name, stage in every.items() if name != "code"}
    assert every["code"]["outs"] == [{"code.json": {"cache": False}}]
    for name, stage in stages.items():
        assert stage["cmd"] == f"python -m stages.{name}"
        assert stage["params"][0] == {"code.json": [f"{name}.hash"]}


def test_nothing_depends_on_this_machine() -> None:
    strange = re.compile(r"/(?:work|root|home)/|https?://[\w.]*(?:pypi|pythonhosted|npmjs)")
    found = [
        name
        for name in sources()
        if name != "tests/test_layering.py"
        and strange.search((ROOT / name).read_bytes().decode(errors="replace"))
    ]
    assert not found
