"""Damaged and hostile .onnx files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper

from pipeline.importers.onnx import OPERATORS
from pipeline.importers.onnx_constants import FOLDS
from tests.importers.onnx_models import model, models, small_network
from tests.importers.test_onnx_front import CASES as FRONTS
from tests.importers.test_onnx_front import CHECKS, normalized
from tests.importers.test_onnx_integers import CASES as INTEGERS
from tests.importers.test_onnx_integers import between
from tests.importers.test_onnx_quantized import CASES, around

HUGE = (0, -1, 2, 3, 7, 100, 2**15, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63))
N = helper.make_node


def seeds() -> list[bytes]:
    """Whole models to damage, float and quantized."""
    quantized = [around(**case) for case in CASES.values()]
    quantized += [between(**case) for case in INTEGERS.values()]
    fronts = [{k: v for k, v in case.items() if k not in CHECKS} for case in FRONTS.values()]
    quantized += [normalized(**case) for case in fronts]
    made = (*models().values(), *quantized, *quantized, small_network())
    return [each.SerializeToString() for each in made]


def damaged(count: int, seed: int = 0) -> Iterator[bytes]:
    """``count`` files: cut short, bits flipped, bytes replaced, parts doubled, numbers and names
    changed in a valid file."""
    random = np.random.default_rng(seed)
    whole = seeds()
    for _ in range(count):
        content = bytearray(whole[random.integers(len(whole))])
        kind = random.integers(12)
        if kind == 0:
            yield bytes(content[: random.integers(len(content))])
        elif kind == 1:
            for _ in range(random.integers(1, 20)):
                content[random.integers(len(content))] ^= 1 << random.integers(8)
            yield bytes(content)
        elif kind == 2:
            start = random.integers(len(content))
            length = min(random.integers(1, 40), len(content) - start)
            content[start : start + length] = random.bytes(length)
            yield bytes(content)
        elif kind == 3:
            first, second = sorted(random.integers(0, len(content), 2))
            yield bytes(content[:second] + content[first:])
        else:
            yield changed(bytes(content), random)


def changed(content: bytes, random: np.random.Generator) -> bytes:
    """A valid file with other numbers, names or shapes in some places."""
    made = onnx.ModelProto.FromString(content)
    graph = made.graph
    for _ in range(random.integers(1, 4)):
        value = int(HUGE[random.integers(len(HUGE))])
        node = graph.node[random.integers(len(graph.node))]
        kind = random.integers(8)
        if kind == 0 and node.attribute:
            attribute = node.attribute[random.integers(len(node.attribute))]
            if attribute.ints:
                attribute.ints[random.integers(len(attribute.ints))] = value
            else:
                attribute.i = value
        elif kind == 1 and node.attribute:
            attribute = node.attribute[random.integers(len(node.attribute))]
            attribute.type = int(random.integers(0, 12))
        elif kind == 2 and graph.initializer:
            held = graph.initializer[random.integers(len(graph.initializer))]
            if held.dims:
                held.dims[random.integers(len(held.dims))] = value
            else:
                held.dims.append(value)
        elif kind == 3 and graph.initializer:
            held = graph.initializer[random.integers(len(graph.initializer))]
            held.data_type = int(random.integers(0, 24))
        elif kind == 4 and node.input:
            others = [name for each in graph.node for name in (*each.input, *each.output)]
            node.input[random.integers(len(node.input))] = others[random.integers(len(others))]
        elif kind == 5:
            operators = sorted((*OPERATORS, *FOLDS, "If", "LSTM"))
            node.op_type = operators[random.integers(len(operators))]
        elif kind == 6:
            dims = graph.input[0].type.tensor_type.shape.dim
            if dims:
                dims[random.integers(len(dims))].dim_value = value
        elif kind == 7 and graph.initializer:
            held = graph.initializer[random.integers(len(graph.initializer))]
            if held.raw_data:
                raw = bytearray(held.raw_data)
                raw[: len(raw)] = random.bytes(len(raw))
                held.raw_data = bytes(raw)
    return made.SerializeToString()


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
