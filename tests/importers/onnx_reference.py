"""onnxruntime as a reference whose integers do not depend on the processor.

Without VNNI its products of uint8 by int8 add two of them in 16 bits, which saturate; weights of
tests have 7 bits, with which they do not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.importers.onnx import Onnx
from tests.importers.onnx_models import Array
from tests.importers.support import real


def session(path: Path) -> onnxruntime.InferenceSession:
    """The file's network, operator by operator: optimized, it is fused into other kernels."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def first(frames: Array) -> Array:
    """(n, h, w, c) -> (n, c, h, w)"""
    return frames.transpose(0, 3, 1, 2) if frames.ndim == 4 else frames


def last(frames: Array) -> Array:
    return frames.transpose(0, 2, 3, 1) if frames.ndim == 4 else frames


def answers(path: Path, frames: Array) -> Array:
    """What onnxruntime gives for each of ``frames``, as the file has them; channels last."""
    run = session(path)
    return last(np.concatenate([run.run(None, {"x": frame[None]})[0] for frame in frames]))


def units_off(graph: Graph, path: Path, frames: Array, stored: IntArray) -> IntArray:
    """Differences to onnxruntime's answers to ``frames``, in units of the output, of what ``graph``
    gives for ``stored`` integers, which mean the same."""
    expected = answers(path, frames)
    found = real(graph, graph.output, graph.outputs(stored.astype(np.int64)))
    off = (found.reshape(expected.shape) - expected) / graph.tensors[graph.output].scale[0]
    return np.rint(off).astype(np.int64)


def off_at_random(made: onnx.ModelProto, folder: Path) -> IntArray:
    """``units_off`` for random integers of the input, nothing off by more than one."""
    onnx.save(made, folder / "net.onnx")
    graph = Onnx(str(folder / "net.onnx")).graph()
    stored = np.random.default_rng(0).integers(-128, 128, (40, *graph.tensors[graph.input].shape))
    frames = first(real(graph, graph.input, stored).astype(np.float32))
    off = units_off(graph, folder / "net.onnx", frames, stored)
    assert np.abs(off).max() <= 1
    return off
