"""The user's own files and boards, part of the cache key; what code imports. Fields that are read
from a class' source are those that importing it finds; a config has them, with their types."""

import ast
import dataclasses
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline import hardware
from pipeline.home import ROOT
from pipeline.runner import closure, code, own, schema, workspace
from pipeline.runner.fields import fields, structured
from pipeline.runner.schema import CODE_GROUPS
from tests.programs import ran, written
from tests.runner.project import HARDWARE, Project, clean_environment

MINE = '''\
"""A strategy with fields that no other has."""

from dataclasses import dataclass

from pipeline.strategies.small import Small


@dataclass(frozen=True)
class Mine(Small):
    hidden: int = 8
    rate: float = 0.5
'''
YAML = {"_target_": "pipeline.strategies.mine.Mine", "name": "mine", "hidden": 32}


def config(**model: str) -> dict[str, Any]:
    return {"data": {"path": ""}, "model": model, "until": "measure"}


def test_paths_are_relative_to_where_the_command_was_typed(tmp_path: Path) -> None:
    found = config(path="nets/a.tflite")
    own.absolute(found, tmp_path)
    assert found["model"]["path"] == str(tmp_path / "nets" / "a.tflite")
    assert found["data"]["path"] == ""


def test_a_hash_changes_with_content_not_with_place_or_time(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "net.tflite", tmp_path / "b" / "net.tflite"
    for path in (first, second):
        path.parent.mkdir()
        path.write_bytes(b"weights")
    before = own.hashes(config(path=str(first)), tmp_path)
    assert before == own.hashes(config(path=str(second)), tmp_path)
    assert before["model"] and not before["data"]
    second.write_bytes(b"others")
    assert own.hashes(config(path=str(second)), tmp_path) != before
    folder = {**config(), "data": {"path": str(tmp_path)}}
    (tmp_path / "cat").mkdir()
    hashes = {own.hashes(folder, tmp_path)["data"]}
    for name in ("cat/1.png", "cat/2.png"):
        (tmp_path / name).write_bytes(b"x")
        hashes.add(own.hashes(folder, tmp_path)["data"])
    (tmp_path / "cat").rename(tmp_path / "dog")  # another class, perhaps another label
    hashes.add(own.hashes(folder, tmp_path)["data"])
    assert len(hashes) == 4


def test_a_factory_counts_with_what_it_imports(tmp_path: Path) -> None:
    files = {
        "nets/__init__.py": "",
        "nets/mine.py": "import torch\nfrom nets.parts import block\nimport other\n",
        "nets/parts.py": "def block(): ...\n",
        "other.py": "X = 1\n",
        "unused.py": "Y = 1\n",
    }
    written(tmp_path, files)
    chosen = config(factory="nets.mine:Net")
    before = own.hashes(chosen, tmp_path)["model"]
    (tmp_path / "unused.py").write_text("Y = 2\n")
    assert own.hashes(chosen, tmp_path)["model"] == before
    for name in ("nets/__init__.py", "nets/mine.py", "nets/parts.py", "other.py"):
        (tmp_path / name).write_text(files[name] + "\n# changed\n")
        after = own.hashes(chosen, tmp_path)["model"]
        assert after != before, name
        before = after


@pytest.mark.parametrize(
    "entry, wanted",
    [
        ({}, ("fetch", "train", "prune", "quantize", "schedule")),
        ({"enters": "quantize"}, ("fetch", "quantize", "schedule")),
    ],
)
def test_a_network_that_brings_its_weights_is_not_trained(
    entry: dict[str, str], wanted: tuple[str, ...]
) -> None:
    assert workspace.stages({"model": entry, "until": "schedule"}) == wanted


def test_stages_left_out_leave_no_dependencies() -> None:
    stages = code.stages()
    assert {"weights.npz", "pruned.npz"} <= {
        dep for s in stages.values() for dep in s.get("deps", ())
    }
    every = {"model": {"enters": "quantize"}, "until": "measure"}
    workspace.leave_out(stages, workspace.stages(every))
    assert not {"train", "prune"} & stages.keys()
    left = {dep for stage in stages.values() for dep in stage.get("deps", ())}
    assert "graph.json" in left and not {"weights.npz", "pruned.npz"} & left


@pytest.mark.ci
def test_editing_ones_own_data_fetches_it_again(project: Project) -> None:
    mine = project.root / "mine.npz"
    mine.write_bytes(b"first")
    node = project.root / "conf" / "data" / "mnist.yaml"
    node.write_text(yaml.safe_dump({**yaml.safe_load(node.read_text()), "path": str(mine)}))

    def cached() -> bool:
        found = project.run("until=fetch", "output=json").json
        return bool(found["stages"]["fetch"]["cached"])

    assert [cached(), cached()] == [False, True]
    mine.write_bytes(b"second")
    assert [cached(), cached()] == [False, True]


@pytest.mark.ci
def test_fields_of_ones_own_class_are_keys(project: Project) -> None:
    project.write("pipeline/strategies/mine.py", MINE)
    project.write("conf/strategy/mine.yaml", yaml.safe_dump(YAML))
    overrides = ("strategy=mine", "strategy.rate=2", "strategy.pmu_bytes=300")
    run = project.run("output=json", "until=schedule", *overrides)
    assert run.code == 0, run.err
    assert run.json["pmu_bytes"] == 300, "a field of its base, which the YAML does not give"
    params = yaml.safe_load((Path(run.json["run_dir"]) / "params.yaml").read_text())
    assert params["strategy"] == {**YAML, "rate": 2.0, "pmu_bytes": 300}
    assert isinstance(params["strategy"]["rate"], float)
    text = "# @package _global_\ndefaults:\n  - override /strategy: mine\nstrategy:\n  hiden: 3\n"
    project.write("conf/experiment/one.yaml", text)
    assert "did you mean strategy.hidden?" in project.run("experiment=one").err


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
    written(tmp_path, {"pipeline/one.py": "from pipeline import two", "pipeline/two.py": ""})
    found = closure.closure(tmp_path, ["pipeline/one.py"])
    assert found == {"pipeline/one.py", "pipeline/two.py"}
    written(tmp_path, {"pipeline/one.py": "from pipeline import six"})
    assert closure.closure(tmp_path, ["pipeline/one.py"]) == {"pipeline/one.py"}


@pytest.mark.parametrize(
    ("board", "said"),
    [
        ("defaults: [{toolchain: avr_gcc}, _self_]\npart: m8\n", "compiler: avr-gcc"),
        ("defaults: [arduino, {override toolchain: native}, _self_]\n", "compiler: cc"),
        (yaml.safe_dump(HARDWARE), f"compiler: {HARDWARE['toolchain']['compiler']}"),
        ("defaults: [{toolchain: avr_gc}]\n", "unknown hardware/toolchain 'avr_gc': did you mean"),
    ],
)
def test_ones_own_board(tmp_path: Path, board: str, said: str) -> None:
    written(tmp_path, {"conf/hardware/mine.yaml": board})
    words = ("hardware=mine", "--cfg", "job", "-p", "hardware.toolchain")
    done = ran([sys.executable, ROOT / "run.py", *words], tmp_path, env=clean_environment())
    assert said in (done.stderr or done.stdout) and len(done.stderr.splitlines()) < 2, done
    assert done.returncode == said.startswith("unknown")


TARGETS = sorted(
    {
        yaml.safe_load(path.read_text())["_target_"]
        for group in CODE_GROUPS
        for path in (ROOT / "conf" / group).glob("*.yaml")
    }
)

BASE = """\
from dataclasses import dataclass
from typing import ClassVar, Literal

Layout = Literal["slots", "contiguous"]
Shape = tuple[int, ...]

@dataclass
class Base:
    name: ClassVar[str] = "base"
    layout: Layout = "slots"
    size: float = 1.0
"""
DERIVED = """\
from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Optional, TypeVar
from pipeline.base import Base as Other, Layout, Shape

T = TypeVar("T")

@dataclass
class Mine(Other, ABC, Generic[T]):
    size: int = 2
    shape: Shape = ()
    named: str | None = None
    rates: Sequence[float] = ()
    deep: tuple[tuple[int, int], ...] = ()
    flag: Optional[bool] = None
    mixed: tuple[int, str] = (1, "")
    table: dict[str, int] = field(default_factory=dict)
    other: Layout = "slots"
    inner: int = field(init=False)

class Plain(Other):
    needs_data: bool  # no field: the class is no dataclass of its own
"""


@pytest.mark.parametrize("target", TARGETS)
def test_as_by_import(target: str) -> None:
    module, _, name = target.rpartition(".")
    cls: Any = getattr(importlib.import_module(module), name)
    found = fields(ROOT, target)
    assert found is not None
    assert list(found) == [each.name for each in dataclasses.fields(cls) if each.init]
    plain = {"int": int, "float": float, "bool": bool, "str": str}
    for each in dataclasses.fields(cls):
        if each.type in plain:
            assert found[each.name] is plain[str(each.type)]
    assert Any not in found.values(), "a type that is not checked"


YAMLS = [
    p for group in ("quantize", "prune", "frontend") for p in ROOT.glob(f"conf/{group}/*.yaml")
]


@pytest.mark.parametrize("path", sorted(YAMLS), ids=lambda path: path.stem)
def test_a_yaml_gives_the_defaults(path: Path) -> None:
    node = yaml.safe_load(path.read_text())
    module, _, name = node["_target_"].rpartition(".")
    for each in dataclasses.fields(getattr(importlib.import_module(module), name)):
        given = node.get(each.name, "${...}")
        if each.default is not dataclasses.MISSING and not str(given).startswith("${"):
            assert given == each.default, each.name
    if path.stem == "int8_accumulators":  # it trains with those of the plan
        strategy = yaml.safe_load((ROOT / "conf" / "strategy" / "partial.yaml").read_text())
        assert all(node[key] == strategy[key] for key in ("search", "channels"))


def test_what_a_class_may_look_like(tmp_path: Path) -> None:
    written(tmp_path, {"pipeline/base.py": BASE, "pipeline/mine.py": DERIVED})
    found = fields(tmp_path, "pipeline.mine.Mine")
    assert found is not None
    layout, other = found.pop("layout"), found.pop("other")
    assert [member.name for member in layout] == ["slots", "contiguous"]
    assert [member.name for member in other] == ["slots", "contiguous"]
    assert found == {
        "size": int, "shape": list[int], "named": str, "rates": list[float],
        "deep": list[list[int]], "flag": bool, "mixed": Any, "table": dict[str, Any],
    }  # fmt: skip
    assert list(fields(tmp_path, "pipeline.mine.Plain") or ()) == ["layout", "size"]
    assert fields(tmp_path, "pipeline.mine.Absent") is None
    assert fields(tmp_path, "os.path.join") is None


@dataclass(frozen=True)
class Inner:
    size: int
    places: tuple[str, ...] = ("here", "there")


@dataclass(frozen=True)
class Outer:
    name: str
    colour: Literal["red", "green"] = "green"
    inner: Inner = field(default_factory=lambda: Inner(1))
    others: tuple[Inner, ...] = ()
    table: tuple[tuple[int, int], ...] = ()


def merged(given: dict[str, object]) -> dict[str, object]:
    config = OmegaConf.merge(OmegaConf.structured(structured(Outer)), given)
    found = OmegaConf.to_container(config, enum_to_str=True)
    assert isinstance(found, dict)
    return {str(key): value for key, value in found.items()}


def test_a_config_has_defaults_and_types_and_every_field_of_the_board() -> None:
    inner = {"size": MISSING, "places": ["here", "there"]}
    empty = {"others": [], "table": []}
    assert merged({}) == {"name": MISSING, "colour": "green", "inner": inner, **empty}
    found = merged({"others": [{"size": "3"}], "table": [[1, 2]], "colour": "red"})
    assert found["others"] == [{"size": 3, "places": ["here", "there"]}]
    assert (found["table"], found["colour"]) == ([[1, 2]], "red")
    keys = OmegaConf.structured(schema.Config).hardware
    assert list(keys) == [item.name for item in dataclasses.fields(hardware.Hardware)]


@pytest.mark.parametrize(
    "given", [{"colour": "blue"}, {"inner": {"size": "x"}}, {"others": [{"sise": 1}]}]
)
def test_values_of_other_types_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(OmegaConfBaseException, match=r"blue|converted|sise"):
        merged(given)
