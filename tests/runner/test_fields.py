"""The fields of a class read from its source are those that Python finds by importing it; a config
has them, and their types."""

from __future__ import annotations

import dataclasses
import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline import hardware
from pipeline.home import ROOT
from pipeline.runner import schema
from pipeline.runner.fields import fields, structured
from pipeline.runner.schema import CODE_GROUPS

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
MINE = """\
from __future__ import annotations
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


def test_what_a_class_may_look_like(tmp_path: Path) -> None:
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "base.py").write_text(BASE)
    (tmp_path / "pipeline" / "mine.py").write_text(MINE)
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
    assert merged({}) == {
        "name": MISSING,
        "colour": "green",
        "inner": {"size": MISSING, "places": ["here", "there"]},
        "others": [],
        "table": [],
    }
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
