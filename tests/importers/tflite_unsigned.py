"""The networks of the int8 tests in uint8, TensorFlow's older quantization."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.importers.tflite_cases import CASES
from tests.importers.tflite_networks import network
from tests.importers.tflite_writer import Writer

PRODUCTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def case(kind: str, seed: int) -> bytes:
    """The int8 case of ``seed``, its integers 128 greater; weights have one scale, and a zero point
    that is often too far from the middle for int8."""
    rng, write = np.random.default_rng(seed), Writer.content

    def content(net: Writer, *ends: Any) -> bytes:
        weights = {op["in"][1] for op in net.operators if op["kind"] in PRODUCTS}
        for number, each in enumerate(net.tensors):
            if each["scales"].size and each["dtype"] in ("INT8", "INT4"):
                _turn(each, number in weights, rng)
        for op in net.operators:
            if op["kind"] in PRODUCTS and len(op["in"]) > 2:
                given, weight, bias = (net.tensors[place] for place in op["in"])
                bias["scales"] = given["scales"] * weight["scales"]
            if op["kind"] == "CONCATENATION":
                result = net.tensors[op["out"][0]]
                result["scales"] = result["scales"] * np.float32(rng.choice([1, 1.3]))
                result["zeros"] = result["zeros"] + rng.integers(0, 2)
        return write(net, *ends)

    return turned(content, kind, seed)


def turned(content: Callable[..., bytes], kind: str, seed: int) -> bytes:
    """The int8 case of ``seed`` with another ``Writer.content``."""
    before = Writer.content
    Writer.content = content  # type: ignore[method-assign]
    try:
        return CASES.get(kind, network)(np.random.default_rng(seed))
    finally:
        Writer.content = before  # type: ignore[method-assign]


def _turn(tensor: dict[str, Any], weights: bool, rng: np.random.Generator) -> None:
    if tensor["dtype"] == "INT4" or weights:
        tensor["data"] = rng.integers(0, 256, tensor["dims"]).astype(np.uint8)
        tensor["zeros"] = np.array([rng.choice([128, rng.integers(100, 160)])])
        tensor["scales"] = tensor["scales"][:1]
    else:
        tensor["zeros"] = tensor["zeros"] + 128
        if tensor["data"] is not None:
            tensor["data"] = tensor["data"].view(np.uint8) ^ np.uint8(128)
    tensor["dtype"] = "UINT8"
