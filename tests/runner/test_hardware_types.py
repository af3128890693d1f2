from dataclasses import dataclass, field, fields
from typing import Literal

import pytest
from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pipeline import hardware
from pipeline.runner import schema
from pipeline.runner.fields import structured


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


def test_defaults_are_kept_and_what_has_none_must_be_given() -> None:
    assert merged({}) == {
        "name": MISSING,
        "colour": "green",
        "inner": {"size": MISSING, "places": ["here", "there"]},
        "others": [],
        "table": [],
    }


def test_dataclasses_and_tuples_within_are_typed_too() -> None:
    found = merged({"others": [{"size": "3"}], "table": [[1, 2]], "colour": "red"})
    assert found["others"] == [{"size": 3, "places": ["here", "there"]}]
    assert (found["table"], found["colour"]) == ([[1, 2]], "red")


@pytest.mark.parametrize(
    "given", [{"colour": "blue"}, {"inner": {"size": "x"}}, {"others": [{"sise": 1}]}]
)
def test_values_of_other_types_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(OmegaConfBaseException, match=r"blue|converted|sise"):
        merged(given)


def test_the_config_has_every_field_of_the_board() -> None:
    keys = OmegaConf.structured(schema.Config).hardware
    assert list(keys) == [item.name for item in fields(hardware.Hardware)]
