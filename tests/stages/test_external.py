"""An ONNX file whose weights lie beside it, through whole runs."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from tests.importers.onnx_models import small_network
from tests.stages.test_pex import run


@pytest.mark.ci
def test_weights_beside_the_model(tmp_path: Path) -> None:
    """Read from wherever the command is typed; other weights are another network."""
    (tmp_path / "nets").mkdir()
    path = tmp_path / "nets" / "net.onnx"
    onnx.save(small_network(), path, save_as_external_data=True, size_threshold=0, location="w")
    words = ("model=onnx", "hardware=host", "until=quantize", "quantize.images=2")
    first = run(tmp_path, *words, "model.path=nets/net.onnx")
    assert first["status"] == "ok"
    other = tmp_path / "elsewhere"
    other.mkdir()
    again = run(tmp_path, *words, f"model.path={path}")
    assert graph(again) == graph(first)
    content = bytearray((tmp_path / "nets" / "w").read_bytes())
    content[3] ^= 128  # the first weight's sign
    (tmp_path / "nets" / "w").write_bytes(content)
    assert graph(run(tmp_path, *words, f"model.path={path}")) != graph(first)


def graph(result: dict[str, str]) -> bytes:
    return (Path(result["run_dir"]) / "graph.npz").read_bytes()
