"""Float .tflite files: the networks of the int8 tests on real numbers, against tflite-micro."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.errors import ThimbleError
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.float_nodes import Weighted
from pipeline.importers.tflite import TFLite
from tests.importers.tflite_cases import CASES
from tests.importers.tflite_networks import network
from tests.importers.tflite_writer import Writer
from tests.tiers import quick

NEXT = "only zeros are supported|whole multiples of height|QUANTIZE"
"""What int8 networks may have and float ones not yet."""


def floated(kind: str, seed: int, patch: pytest.MonkeyPatch, weights: str = "FLOAT32") -> bytes:
    """The case of ``seed`` on real numbers; ``weights``: see ``Writer.real``."""
    write = Writer.content
    patch.setattr(Writer, "content", lambda net, *ends: write(net.real(weights), *ends))
    made = CASES.get(kind, network)(np.random.default_rng(seed))
    patch.undo()
    return made


def imported(content: bytes, folder: Path) -> FloatGraph:
    (folder / "net.tflite").write_bytes(content)
    found = TFLite(str(folder / "net.tflite"), input_range=(-1.0, 1.0)).float_graph()
    assert found is not None
    return found


def outputs(graph: FloatGraph, pixels: np.ndarray) -> np.ndarray:
    return (
        graph.evaluate(torch.tensor(pixels, dtype=torch.float64)).reshape(len(pixels), -1).numpy()
    )


def reference(content: bytes, frames: np.ndarray) -> np.ndarray:
    pytest.importorskip("tflite_micro")
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(content, arena_size=1 << 22)
    outputs = []
    for frame in frames:
        shape = interpreter.get_input_details(0)["shape"]
        interpreter.set_input(frame.astype(np.float32).reshape(shape), 0)
        interpreter.invoke()
        outputs.append(interpreter.get_output(0).reshape(-1))
    return np.array(outputs)


KINDS = sorted({*CASES, "network"} - {"QUANTIZE", "UNPACK"})


@pytest.mark.parametrize("seeds", quick(1, [range(6), range(1000, 1100)], ci=0), ids=len)
@pytest.mark.parametrize("kind", quick(["MEAN", "TRANSPOSE", "network"], KINDS))
def test_a_float_network_computes_what_tflite_micro_does(
    kind: str, seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds:
        content = floated(kind, seed, monkeypatch)
        try:
            graph = imported(content, tmp_path)
        except ThimbleError as error:
            assert re.search(NEXT, str(error)), error
            continue
        pixels = np.random.default_rng(seed).integers(0, 256, (3, *graph.shapes[graph.input]))
        ours = outputs(graph, pixels)
        wanted = reference(content, pixels / 127.5 - 1)
        most = 1e-5 * max(1.0, abs(wanted).max())
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=most, err_msg=f"seed {seed}")


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize(("weights", "most"), [("INT8", 1e-6), ("FLOAT16", 2e-3)])
def test_weights_of_fewer_bits_keep_their_values(
    kind: str, weights: str, most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(8):
        whole = imported(floated(kind, seed, monkeypatch), tmp_path)
        small = imported(floated(kind, seed, monkeypatch, weights), tmp_path)
        pixels = np.random.default_rng(seed).integers(0, 256, (3, *whole.shapes[whole.input]))
        ours, wanted = (outputs(graph, pixels) for graph in (small, whole))
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=most * abs(wanted).max())
        kept = [node.steps is not None for node in small.nodes if isinstance(node, Weighted)]
        assert weights != "INT8" or all(kept)
