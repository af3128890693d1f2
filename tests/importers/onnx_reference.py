"""onnxruntime as a reference whose integers do not depend on the processor.

Without VNNI its products of uint8 by int8 add two of them in 16 bits, which saturate; those of
uint8 by uint8 are exact on every processor. int8 is uint8 with 128 less, zero points as well.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tests.importers.onnx_models import Array

N = helper.make_node
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
