"""Files of ONNX made to exhaust a careless importer."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.importers.onnx_models import N, model


def hostile() -> dict[str, bytes]:
    """Files made to exhaust a careless importer."""
    x = (1, 4, 9, 8)
    many = "; ".join(f"t{i} = Add({'x' if i == 0 else f't{i - 1}'}, x)" for i in range(3000))
    declared = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    declared.dims[0] = 2**40
    external = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    external.data_location = TensorProto.EXTERNAL
    external.external_data.add(key="location", value="/etc/passwd")
    quantized = "q = QuantizeLinear(x, s); a = DequantizeLinear(q, s)"
    made = {
        "padding": model("y = Pad(x, p)", x, {"p": np.array([0, 0, 2**40, 0, 0, 0, 0, 2**40])}),
        "padded convolution": model(
            [N("Conv", ["x", "w"], ["y"], pads=[2**31 - 2] * 4)], x,
            {"w": np.ones((1, 4, 1, 1), np.float32)}),
        "padded pool": model([N("MaxPool", ["x"], ["y"], kernel_shape=[2**30, 2**30],
                                pads=[2**30 - 1] * 4)], x),
        "constant of shape": model("c = ConstantOfShape(s); y = Add(x, c)", x,
                                   {"s": np.array([2**20, 2**20])}),
        "expanded": model("e = Expand(c, s); y = Add(x, e)", x,
                          {"c": np.ones(1, np.float32), "s": np.array([2**20, 2**20])}),
        "outer sum": model(
            "c = Add(a, b); y = Add(x, c)", x,
            {"a": np.ones((1 << 16, 1), np.float32), "b": np.ones((1, 1 << 16), np.float32)}),
        "gathered": model(
            "b = Gather(a, i); c = Gather(b, j); y = Add(x, c)", x,
            {"a": np.ones((1, 1 << 14), np.float32), "i": np.zeros(1 << 14, np.int64),
             "j": np.zeros(1 << 14, np.int64)}),
        "many": model(f"{many}; y = Abs(t2999)", x),
        "large input": model("y = Abs(x)", (1, 2**20, 2**20, 2**10)),
        "cycle": model("a = Add(x, b); b = Abs(a); y = Abs(b)", x),
        "axes": model("y = Unsqueeze(x, a)", x, {"a": np.arange(60, dtype=np.int64)}),
        "nan scale": model(f"{quantized}; y = Abs(a)", x, {"s": np.float32("nan")}),
        "tiny scale": model(
            f"{quantized}; o = Conv(a, w); p = QuantizeLinear(o, t); y = DequantizeLinear(p, t)", x,
            {"s": np.float32(1e30), "t": np.float32(1e-38),
             "w": np.ones((1, 4, 1, 1), np.float32)}),
    }  # fmt: skip
    contents = {name: each.SerializeToString() for name, each in made.items()}
    for name, tensor in (("declared size", declared), ("external data", external)):
        broken = model("y = Add(x, w)", x)
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
