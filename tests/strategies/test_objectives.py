"""One list of objectives for all strategies, and a page that says what each makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline import config
from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.strategies.base import OBJECTIVES

OPTIONS = sorted((ROOT / "conf" / "strategy").glob("*.yaml"))
every = pytest.mark.parametrize("path", OPTIONS, ids=lambda path: path.stem)


def option(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


@every
def test_each_option_gives_one_of_the_list_and_takes_all(path: Path) -> None:
    assert option(path)["objective"] == config.instantiate(option(path)).objective
    for objective in OBJECTIVES:
        assert config.instantiate(option(path) | {"objective": objective}).objective == objective


@every
def test_another_word_is_refused_in_one_line(path: Path) -> None:
    with pytest.raises(ThimbleError) as error:
        config.instantiate(option(path) | {"objective": "speed"})
    choices = "choose memory, latency, throughput or energy"
    assert str(error.value) == f"strategy.objective=speed: {choices}"


def test_the_page_has_a_row_for_each_strategy_and_a_column_for_each_objective() -> None:
    page = (ROOT / "docs" / "strategies.md").read_text()
    lines = page[page.index("| strategy |") :].partition("\n\n")[0].splitlines()
    head, _, *rows = [line.strip("| ").split(" | ") for line in lines]
    assert tuple(head[1:]) == OBJECTIVES
    named = {name.strip("`") for row in rows for name in row[0].split(", ")}
    assert named == {path.stem for path in OPTIONS}
    for path in OPTIONS:
        (row,) = (row for row in rows if f"`{path.stem}`" in row[0])
        chosen = OBJECTIVES.index(option(path)["objective"])
        assert [cell.startswith("**") for cell in row[1:]] == [n == chosen for n in range(4)]
