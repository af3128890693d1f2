"""The scoreboard's table: networks that go in or do not, beside their references and C."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.importers.onnx_models import IMAGE, one
from tests.importers.tflite_cases import fully_connected
from tests.peers.scoreboard import main


def test_a_folder_becomes_a_page(tmp_path: Path) -> None:
    pytest.importorskip("tflite_micro")
    (tmp_path / "a.tflite").write_bytes(fully_connected(np.random.default_rng(0)))
    onnx.save(one("Relu", IMAGE), tmp_path / "b.onnx")
    onnx.save(one("CumSum", IMAGE, np.array(1)), tmp_path / "c.onnx")
    (tmp_path / "net.c").write_text("int kept[25]; const char held[1000] = {1};")
    main(str(tmp_path), str(tmp_path / "page.md"), f"copy=cp {tmp_path}/net.c {{c}}", "none=false")
    title, _, count, _, head, _, *rows = (tmp_path / "page.md").read_text().splitlines()
    lite, relu, sums = ([cell.strip() for cell in each.split("|")[1:-1]] for each in rows)
    assert title.startswith("# Scoreboard of 20") and count.startswith("2 of 3 go in; 1 have")
    assert head.endswith("| equal bytes | copy | none |")
    assert lite[:2] == ["a.tflite", "yes"] and int(lite[4].replace(",", "")) > int(lite[2]) > 0
    assert lite[6:] == ["yes", "100, 1,000", "no"]
    assert relu[:3] == ["b.onnx", "yes", "288"] and relu[4:7] == ["", "", ""]
    assert sums[1].startswith("no: ") and "CumSum is not supported" in sums[1]
