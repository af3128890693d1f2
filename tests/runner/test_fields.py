"""The fields of a class read from its source are those that Python finds by importing it."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.home import ROOT
from pipeline.runner.fields import fields
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
    assert list(found) == [field.name for field in dataclasses.fields(cls) if field.init]
    plain = {"int": int, "float": float, "bool": bool, "str": str}
    for field in dataclasses.fields(cls):
        if field.type in plain:
            assert found[field.name] is plain[str(field.type)]
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
