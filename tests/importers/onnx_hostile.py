"""Files of ONNX made to exhaust a careless importer."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.importers.onnx_models import N, model


def hostile() -> dict[str, bytes]:
    """Files made to exhaust a careless importer."""
    x = (1, 4, 9, 8)
    many = [N("Add", ["x" if i == 0 else f"t{i - 1}", "x"], [f"t{i}"]) for i in range(3000)]
    many[-1].output[0] = "y"
    declared = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    declared.dims[0] = 2**40
    external = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    external.data_location = TensorProto.EXTERNAL
    external.external_data.add(key="location", value="/etc/passwd")
    made = {
        "padding": model([N("Pad", ["x", "p"], ["y"])], x,
                         {"p": np.array([0, 0, 2**40, 0, 0, 0, 0, 2**40])}),
        "padded convolution": model(
            [N("Conv", ["x", "w"], ["y"], pads=[2**31 - 2] * 4)], x,
            {"w": np.ones((1, 4, 1, 1), np.float32)}),
        "padded pool": model([N("MaxPool", ["x"], ["y"], kernel_shape=[2**30, 2**30],
                                pads=[2**30 - 1] * 4)], x),
        "constant of shape": model(
            [N("ConstantOfShape", ["s"], ["c"]), N("Add", ["x", "c"], ["y"])], x,
            {"s": np.array([2**20, 2**20])}),
        "expanded": model([N("Expand", ["c", "s"], ["e"]), N("Add", ["x", "e"], ["y"])], x,
                          {"c": np.ones(1, np.float32), "s": np.array([2**20, 2**20])}),
        "outer sum": model(
            [N("Add", ["a", "b"], ["c"]), N("Add", ["x", "c"], ["y"])], x,
            {"a": np.ones((1 << 16, 1), np.float32), "b": np.ones((1, 1 << 16), np.float32)}),
        "gathered": model(
            [N("Gather", ["a", "i"], ["b"]), N("Gather", ["b", "j"], ["c"]),
             N("Add", ["x", "c"], ["y"])], x,
            {"a": np.ones((1, 1 << 14), np.float32), "i": np.zeros(1 << 14, np.int64),
             "j": np.zeros(1 << 14, np.int64)}),
        "many": model(many, x),
        "large input": model([N("Abs", ["x"], ["y"])], (1, 2**20, 2**20, 2**10)),
        "cycle": model([N("Add", ["x", "b"], ["a"]), N("Abs", ["a"], ["b"]),
                        N("Abs", ["b"], ["y"])], x),
        "axes": model([N("Unsqueeze", ["x", "a"], ["y"])], x,
                      {"a": np.arange(60, dtype=np.int64)}),
        "nan scale": model(
            [N("QuantizeLinear", ["x", "s"], ["q"]), N("DequantizeLinear", ["q", "s"], ["y"])],
            x, {"s": np.float32("nan")}),
        "tiny scale": model(
            [N("QuantizeLinear", ["x", "s"], ["q"]), N("DequantizeLinear", ["q", "s"], ["a"]),
             N("Conv", ["a", "w"], ["o"]), N("QuantizeLinear", ["o", "t"], ["p"]),
             N("DequantizeLinear", ["p", "t"], ["y"])],
            x, {"s": np.float32(1e30), "t": np.float32(1e-38),
                "w": np.ones((1, 4, 1, 1), np.float32)}),
    }  # fmt: skip
    contents = {name: each.SerializeToString() for name, each in made.items()}
    for name, tensor in (("declared size", declared), ("external data", external)):
        broken = model([N("Add", ["x", "w"], ["y"])], x)
        broken.graph.initializer.append(tensor)
        contents[name] = broken.SerializeToString()
    deep = onnx.ModelProto()
    inner = deep.graph
    for _ in range(200):
        attribute = inner.node.add(op_type="If").attribute.add(name="then_branch")
        attribute.type = onnx.AttributeProto.GRAPH
        inner = attribute.g
    contents["nested"] = deep.SerializeToString()
    return contents
