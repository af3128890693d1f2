"""The networks of the int8 tests with activations of 16 bits: TensorFlow's 16x8."""

from typing import Any

import numpy as np

from tests.importers.tflite_unsigned import PRODUCTS, turned
from tests.importers.tflite_writer import Writer


def case(kind: str, seed: int) -> bytes:
    """The int8 case of ``seed`` with activations 256 times as fine, zero points of 0, and biases of
    64 bits."""

    def content(net: Writer, *ends: Any) -> bytes:
        weights = {op["in"][1] for op in net.operators if op["kind"] in PRODUCTS}
        for number, each in enumerate(net.tensors):
            if each["scales"].size and each["dtype"] == "INT8" and number not in weights:
                each |= {"dtype": "INT16", "zeros": 0 * each["zeros"]}
                each["scales"] = each["scales"] / np.float32(256)
        for op in net.operators:
            if op["kind"] in PRODUCTS and len(op["in"]) > 2:
                bias = net.tensors[op["in"][2]]
                bias |= {"dtype": "INT64", "data": bias["data"].astype(np.int64) * 256}
        return write(net, *ends)

    write = Writer.content
    return turned(content, kind, seed)
