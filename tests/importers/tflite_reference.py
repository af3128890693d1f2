"""The reference interpreter, and the importer on bytes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.graph.ends import joined
from pipeline.graph.graph import Graph
from pipeline.importers.tflite import TFLite


def imported(content: bytes, folder: Path, **options: Any) -> Graph:
    (folder / "net.tflite").write_bytes(content)
    return TFLite(str(folder / "net.tflite"), **options).graph()


def frames(graph: Graph, count: int = 6, seed: int = 0) -> np.ndarray:
    """(count, *input shape) stored integers, of several inputs (count, elements); the extremes are
    among them."""
    rng, parts = np.random.default_rng(seed), []
    for given in (graph.tensors[name] for name in graph.inputs):
        low, high = given.dtype.minimum, given.dtype.maximum
        parts.append(rng.integers(low, high + 1, (count, *given.shape)))
        parts[-1][0], parts[-1][1 % count] = low, high
    return joined(parts)


def reference(content: bytes, frames: np.ndarray, graph: Graph | None = None) -> np.ndarray:
    """(n, *input shape) -> (n, outputs): what tflite-micro makes of the stored integers, those of
    several inputs one after the other, as it gives several outputs.

    Float ends are left out by the importer: real values go in and come out, those of ``graph``;
    without it they are given and returned.
    """
    pytest.importorskip("tflite_micro")  # wheels exist for Linux on x86-64 only
    from tflite_micro.python.tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(content, arena_size=1 << 22)
    ends = (len(graph.inputs), len(graph.outputs)) if graph else (1, 1)
    details = [interpreter.get_input_details(n) for n in range(ends[0])]
    real = graph if details[0]["dtype"] == np.float32 else None
    given = (real.tensors[real.input].real(frames) if real else frames).reshape(len(frames), -1)
    at = np.cumsum([np.prod(each["shape"]) for each in details])
    outputs = []
    for frame in given:
        if not (graph and graph.states):
            interpreter.reset()
        for n, (part, of) in enumerate(zip(np.split(frame, at[:-1]), details, strict=True)):
            interpreter.set_input(part.astype(of["dtype"]).reshape(of["shape"]), n)
        interpreter.invoke()
        every = [interpreter.get_output(n).reshape(-1) for n in range(ends[1])]
        outputs.append(np.concatenate(every))
    found = np.array(outputs)
    if real:
        return real.tensors[real.output].quantized(found)
    return found.astype(np.promote_types(found.dtype, np.int64))


def assert_equal(content: bytes, graph: Graph, count: int, seed: int = 0) -> None:
    given = frames(graph, count, seed)
    ours = graph.evaluate(given, batch=50).reshape(count, -1)
    wanted = reference(content, given, graph)
    wrong = int((ours != wanted).sum())
    assert not wrong, f"{wrong} of {wanted.size} differ, by up to {abs(ours - wanted).max()}"
