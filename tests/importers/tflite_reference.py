"""The reference interpreter, and the importer on bytes."""

from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.importers.tflite import TFLite


def imported(content: bytes, folder: Path) -> Graph:
    path = folder / "net.tflite"
    path.write_bytes(content)
    return TFLite(path=str(path)).graph()


def frames(graph: Graph, count: int, seed: int = 0) -> np.ndarray:
    """(count, *input shape) stored integers; the extremes are among them."""
    given = graph.tensors[graph.input]
    rng = np.random.default_rng(seed)
    low, high = given.dtype.minimum, given.dtype.maximum
    found = rng.integers(low, high + 1, (count, *given.shape))
    found[0], found[1 % count] = low, high
    return found


def reference(content: bytes, frames: np.ndarray, graph: Graph | None = None) -> np.ndarray:
    """(n, *input shape) -> (n, outputs): what tflite-micro makes of the stored integers.

    Float ends are left out by the importer: real values go in and come out, those of ``graph``.
    """
    pytest.importorskip("tflite_micro")  # wheels exist for Linux on x86-64 only
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(content, arena_size=1 << 22)
    details = interpreter.get_input_details(0)
    real = graph if details["dtype"] == np.float32 else None
    given = real.tensors[real.input].real(frames) if real else frames
    outputs = []
    for frame in given:
        interpreter.set_input(frame.astype(details["dtype"]).reshape(details["shape"]), 0)
        interpreter.invoke()
        outputs.append(interpreter.get_output(0).reshape(-1))
    found = np.array(outputs)
    return real.tensors[real.output].quantized(found) if real else found.astype(np.int64)


def assert_equal(content: bytes, graph: Graph, count: int, seed: int = 0) -> None:
    given = frames(graph, count, seed)
    ours = graph.evaluate(given, batch=50).reshape(count, -1)
    wanted = reference(content, given, graph)
    wrong = int((ours != wanted).sum())
    assert not wrong, f"{wrong} of {wanted.size} differ, by up to {abs(ours - wanted).max()}"
