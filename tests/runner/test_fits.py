"""Boards side by side, and runs; and the JSON that says so."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from rich.console import Console

from pipeline.artifacts import write_json, write_npz, write_text
from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.runner import fits, verbs
from pipeline.targets import candidates
from tests.boards import load_hardware
from tests.strategies import nets


def schema(name: str) -> Any:
    return json.loads((ROOT / "docs" / f"{name}.schema.json").read_text())


@pytest.mark.ci
def test_a_row_says_whether_a_board_has_room(tmp_path: Path) -> None:
    graph, board = nets.ds_cnn((8,) * 3), load_hardware("nucleo_f302r8")
    graph.save(tmp_path)
    write_npz(tmp_path / candidates.DATA, {})
    boards = [replace(board, name=f"{n}", sram_bytes=n, clock_hz=n) for n in (2048, 3600, 1 << 16)]
    found = sorted((candidates.row(tmp_path, each) for each in boards), key=fits.order)
    assert [row["fits"] for row in found] == [True, True, False]
    assert [row["board"] for row in found] == ["3600", "65536", "2048"]
    assert found[2]["lacks_bytes"]["sram"] == found[2]["needed_bytes"]["sram"] - 2048
    said = {"status": "ok", "run_dir": "x", "model": graph.name, "smallest": None, "boards": found}
    jsonschema.validate(said, schema("fits"))


@pytest.mark.parametrize("width", [80, 120])
def test_a_narrow_table_breaks_no_number_and_no_name(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"board": "stm32f769i_disco", "fits": True, "strategy": "herringbone",
           "sram_limit_bytes": 524_288, "flash_limit_bytes": 3_145_728, "modelled_us": 196_100.0,
           "planned_sram_bytes": 116_782, "planned_flash_bytes": 1_250_946}  # fmt: skip
    lacks = {**row, "fits": False, "lacks_bytes": {"sram": 25_684, "flash": 8_246}}
    Console(width=width).print(fits._table([row, lacks], width))
    said = capsys.readouterr().out
    for word in ("stm32f769i_disco", "116,782 B", "1,250,946 B", "196.1 ms", "herringbone"):
        assert said.count(word) == 2, word
    assert ("3,145,728" in said) == (width == 120) and max(map(len, said.splitlines())) <= width


def run(folder: Path, strategy: str, plan: str, peak: int) -> Path:
    """What a planned run leaves, of which no other part differs."""
    made = {"plan.json": plan, "graph.json": "a"}
    params = {"strategy": {"name": strategy}, "output": folder.name, "seed": 1}
    layers = {"profile": [{"layer": "conv", "bytes": peak}], "thumbnail": {"rows": [strategy]},
              "forms": [{"layer": "conv", "modelled_cycles": 7}]}  # fmt: skip
    write_text(folder / "params.yaml", yaml.dump(params))
    write_json(folder / "code.json", {"schedule": {"made": made}})
    write_json(folder / "result.json", {"status": "ok", "pmu_bytes": peak, "run_dir": "x"})
    write_json(folder / "schedule.json", layers)
    return folder


def test_runs_differ_first_where_a_cause_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = run(tmp_path / "one", "naive", "b", 9), run(tmp_path / "two", "joint", "c", 5)
    same, found = run(tmp_path / "same", "joint", "d", 5), []
    for words in ((one, two), (two, same), (two, two)):
        assert verbs.called(["compare", *map(str, words), "output=json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
        jsonschema.validate(found[-1], schema("compare"))
    assert [each["differs_first"] for each in found] == ["config", "plan", None]
    assert found[0]["config"] == {"strategy.name": ["naive", "joint"]}
    assert found[0]["figures"] == {"pmu_bytes": [9, 5]} and not found[1]["figures"]
    assert found[0]["plan"] == {"plan.json": ["b", "c"]}
    assert found[0]["maps"] == [["naive"], ["joint"]]
    assert found[0]["layers"] == [{"layer": "conv", "cycles": [7, 7], "live_bytes": [9, 5]}]
    assert verbs.called(["compare", str(one), str(two)]) == 0
    assert re.search(r"layers, live bytes +one +two\nconv +9 +5\n", capsys.readouterr().out)
    with pytest.raises(ThimbleError, match="no run's folder"):
        verbs.called(["compare", str(one), str(tmp_path)])
