"""onnxruntime as a reference whose integers do not depend on the processor.

Without VNNI its products of uint8 by int8 add two of them in 16 bits, which saturate; those of
uint8 by uint8 are exact on every processor. int8 is uint8 with 128 less, zero points as well.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.importers.onnx import Onnx
from tests.importers.onnx_models import Array, N
from tests.importers.support import real

PRODUCTS = {"QLinearConv": (3, 5, 7), "QLinearMatMul": (3, 5, 7), "QGemm": (3, 5, 8)}
"""Where their weights, the weights' zero points and the output's zero point are."""


def exact(made: onnx.ModelProto) -> onnx.ModelProto:
    """``made``, with uint8 at both sides of every product of integers."""
    made = onnx.ModelProto.FromString(made.SerializeToString())
    held = {each.name: numpy_helper.to_array(each) for each in made.graph.initializer}
    added: dict[str, Array] = {}

    def unsigned(name: str) -> str:
        added[f"{name}+128"] = (held[name].astype(int) + 128).astype(np.uint8)
        return f"{name}+128"

    def moved(source: str, target: str, operator: str, kind: int) -> list[onnx.NodeProto]:
        added["128"] = np.array(128, np.int32)
        wide = [f"{target} wide", f"{target} moved"]
        return [N("Cast", [source], wide[:1], to=TensorProto.INT32),
                N(operator, [wide[0], "128"], wide[1:]),
                N("Cast", wide[1:], [target], to=kind)]  # fmt: skip

    nodes = []
    for index, node in enumerate(made.graph.node):
        before, after = [], []
        if node.op_type in PRODUCTS:
            weights, zeros, ends = PRODUCTS[node.op_type]
            if held[node.input[2]].dtype == np.int8:
                source, target = f"{node.input[0]} {index}", f"{node.output[0]} {index}"
                before = moved(node.input[0], source, "Add", TensorProto.UINT8)
                after = moved(target, node.output[0], "Sub", TensorProto.INT8)
                node.input[0], node.output[0] = source, target
                for each in (2, ends):
                    node.input[each] = unsigned(node.input[each])
            if held[node.input[weights]].dtype == np.int8:
                for each in (weights, zeros):
                    node.input[each] = unsigned(node.input[each])
        nodes += [*before, node, *after]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    made.graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in added.items())
    return made


def session(path: Path) -> onnxruntime.InferenceSession:
    """The file's network, operator by operator: optimized, it is fused into other kernels."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        exact(onnx.load(path)).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


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
