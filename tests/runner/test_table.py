from pathlib import Path
from typing import Any

import pytest

from pipeline.report import pareto
from pipeline.runner.table import keep


def test_a_picture_that_fails_is_said_and_costs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(*_: Any) -> bytes:
        raise ValueError("no finite limits")

    monkeypatch.setattr(pareto, "png", draw)
    job = {"status": "ok", "overrides": [], "run_dir": str(tmp_path / "0")}
    files = [tmp_path / "table.csv", tmp_path / "sweep.html"]
    assert keep(tmp_path, {"jobs": [job]}, None) == files, "there is nothing else to draw"
    assert sorted(tmp_path.iterdir()) == sorted([*files, tmp_path / "table.json"])
    said = capsys.readouterr()
    assert said.err == "pareto.png could not be drawn: no finite limits\n" and not said.out
