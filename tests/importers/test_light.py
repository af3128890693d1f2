"""What is read without PyTorch, whose import would take longer than all the rest: quantized files,
and the names of the files beside an ONNX model, which the runner asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from pipeline.artifacts import read_npz, write_npz
from pipeline.datasets.nothing import Nothing
from pipeline.graph.graph import Graph
from pipeline.home import ROOT
from tests.importers.tflite_writer import Writer

PROGRAM = "import sys; from stages import quantize; quantize.main(); print('torch' in sys.modules)"


def test_a_tflite_file_needs_no_torch(tmp_path: Path) -> None:
    net = Writer()
    x, y = (net.tensor((1, 4), 0.1, 0) for _ in range(2))
    (tmp_path / "net.tflite").write_bytes(net.alone("RELU", x, [], y))
    config = {
        "model": {
            "_target_": "pipeline.importers.tflite.TFLite",
            "name": "net",
            "path": str(tmp_path / "net.tflite"),
        },
        "quantize": {"_target_": "pipeline.quantize.int8.Int8", "name": "int8"},
        "passes": ["constants"],
        "sliding": {"windows": 1, "rows": 1},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config))
    write_npz(tmp_path / "data" / "dataset.npz", Nothing().arrays())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "False\n"
    assert Graph.load(tmp_path).operators and not read_npz(tmp_path / "float_labels.npz")


def test_the_files_beside_a_model_are_found_without_torch() -> None:
    program = (
        "import sys; from pipeline.importers import onnx_external; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
