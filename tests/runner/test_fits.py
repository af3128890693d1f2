"""Boards side by side, and the JSON that says so."""

import json
from dataclasses import replace

import jsonschema
import pytest

from pipeline.home import ROOT
from pipeline.strategies.auto import Auto
from pipeline.targets import candidates
from tests.boards import load_hardware
from tests.strategies import nets

SCHEMAS = ROOT / "docs"
FITS = {"3600": True, "65536": True, "2048": False}


@pytest.mark.ci
def test_a_row_is_as_if_it_was_planned_for_alone() -> None:
    graph, board = nets.ds_cnn((8,) * 3), load_hardware("nucleo_f302r8")
    boards = [replace(board, name=f"{n}", sram_bytes=n, clock_hz=n) for n in (2048, 3600, 1 << 16)]
    found = sorted(candidates.rows(graph, boards), key=candidates.order)
    assert [(row["board"], row["fits"]) for row in found] == list(FITS.items())
    assert found[2]["lacks_bytes"]["sram"] == found[2]["needed_bytes"]["sram"] - 2048
    for row, chosen in zip(found, (boards[1], boards[2], boards[0]), strict=True):
        alone = next(candidates.rows(graph, [chosen]))
        assert row == alone and alone["strategy"] == Auto().plan(graph, chosen).strategy
    schema = json.loads((SCHEMAS / "fits.schema.json").read_text())
    said = {"status": "ok", "run_dir": "x", "model": graph.name, "smallest": None, "boards": found}
    jsonschema.validate(said, schema)
