"""Refusals in one line that names the operator, where it is and what is supported instead; the
reader follows no offset out of the file and believes no size."""

import struct
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.Padding import Padding

from pipeline.errors import ThimbleError
from pipeline.importers.tflite_flatbuffer import Table, root
from pipeline.importers.tflite_model import printable
from tests.importers.tflite_reference import imported
from tests.importers.tflite_writer import VALID, Writer
from tests.programs import refusal


def told(content: bytes, folder: Path) -> str:
    message = refusal(lambda: imported(content, folder))
    assert "\n" not in message
    assert message.startswith(str(folder / "net.tflite"))
    return message.partition("net.tflite: ")[2]


def one(kind: str, dims: Any = (1, 4, 4, 2), out: Any = None, **more: Any) -> bytes:
    """A network of one operator; ``more`` are its options and, in lower case, its output."""
    net, target = Writer(), {k: more.pop(k) for k in ("scale", "zero", "dtype") if k in more}
    x = net.tensor(dims, 0.1, 3, more.pop("given", "INT8"))
    extra = [net.constant(*args) for args in more.pop("constants", ())]
    y = net.tensor(out or dims, **{"scale": 0.1, "zero": 3, **target})
    return net.alone(kind, x, [*extra], y, more.pop("options", ""), **more)


def conv(weights: np.ndarray | None = None, scales: Any = 0.1, zero: Any = 0, **more: Any) -> bytes:
    held = np.ones((3, 1, 1, 2), np.int8) if weights is None else weights
    axis = more.pop("axis", 0)
    net = Writer()
    x = net.tensor((1, 4, 4, 2), 0.1, 3)
    w = net.constant(held, scales, zero, axis=axis)
    y = net.tensor((1, 4, 4, 3), 0.1, 3)
    return net.alone("CONV_2D", x, [w], y, "Conv2DOptions", **VALID | more)


def linked(*links: tuple[str, int, int], ends: Any = ((0,), (-1,)), scale: float = 0.1) -> bytes:
    """Operators of one input and one output by their numbers; the last tensor has ``scale``."""
    net, count = Writer(), 1 + max(target for _, _, target in links)
    tensors = [net.tensor((1, 4), 0.1, 0) for _ in range(count - 1)]
    tensors.append(net.tensor((1, 4), scale, 0))
    for kind, source, target in links:
        if kind == "DEQUANTIZE":
            net.tensors[target] |= {"dtype": "FLOAT32", "scales": np.zeros(0)}
        net.operator(kind, [source], [target])
    return net.content(*([tensors[number] for number in end] for end in ends))


def sharing() -> bytes:
    """Constants that are the same bytes of the file."""
    net = Writer()
    tensors = [net.tensor((1, 4096), 0.1, 0) for _ in range(12)]
    held = net.constant(np.ones(4096, np.int8), 0.1)
    for a, b in pairwise(tensors):
        net.operator("ADD", [a, held], [b], "AddOptions")
    return net.content([tensors[0]], [tensors[-1]])


INT32 = np.int32
EACH = np.arange(-128, 128).astype(np.int8)
REFUSED = {
    "unknown": (one("BIDIRECTIONAL_SEQUENCE_LSTM"), "not supported; of recurrent layers"),
    "custom": (one("MyOperator"), "operator 0, custom operator MyOperator: not supported"),
    "control flow": (one("WHILE"), "operator 0, WHILE: not supported"),
    "float": (one("RELU", given="FLOAT32"), "net/tensor_0 is float32, and the model is not float"),
    "uint8": (one("RELU", given="UINT8"), "net/tensor_0 is uint8, TensorFlow's older quantization"),
    "int32": (one("RELU", dtype="INT32"), "net/tensor_1 has the type int32"),
    "batch": (one("MAX_POOL_2D", (2, 4, 4, 2)), "has the shape [2, 4, 4, 2], expected one image"),
    "no scale": (one("RELU", scale=()), "net/tensor_1 has 0 scales, and one"),
    "many scales": (one("RELU", scale=(0.1, 0.2)), "net/tensor_1 has 2 scales, and one"),
    "zero point": (one("RELU", zero=200), "net/tensor_1 has the zero point 200, which is no int8"),
    "zero scale": (one("RELU", scale=0.0), "net/tensor_1 has a scale that is no positive number"),
    "size 0": (one("RELU", (1, 0)), "sizes that are only known at run time are not supported"),
    "large": (one("RELU", (1, 1 << 14, 1 << 14)), "has 268,435,456 elements, more than 67,108,864"),
    "sigmoid": (one("LOGISTIC"), "has the scale 0.1 and the zero point 3, expected 0.00390625 and"),
    "softmax": (one("SOFTMAX", options="SoftmaxOptions", Beta=1.0), "has the scale 0.1 and the"),
    "beta": (
        one("SOFTMAX", options="SoftmaxOptions", scale=1 / 256, zero=-128, Beta=1e-9),
        "its beta of 1e-09 is too small",
    ),
    "stride 0": (conv(StrideH=0), "its stride_h is 0, at least 1 is needed"),
    "activation": (
        conv(FusedActivationFunction=ActivationFunctionType.TANH),
        "its fused activation 4 is not supported",
    ),
    "padding": (conv(Padding=7), "its padding is number 7, expected SAME or VALID"),
    "dilation": (
        conv(np.ones((3, 3, 3, 2), np.int8), Padding=Padding.SAME, DilationHFactor=1 << 28),
        "its padded input has",
    ),
    "filters": (conv(np.ones((3, 1, 1, 5), np.int8)), "3 filters of 5 channels do not fit an"),
    "kernel": (conv(np.ones((3, 5, 5, 2), np.int8)), "kernel is larger than 4x4"),
    "shape": (conv(StrideW=2), "but net/tensor_2 is (4, 4, 3)"),
    "weights' scales": (conv(scales=(0.1, 0.2)), "2 scales along axis 0, expected 1, or 3 along"),
    "weights' axis": (conv(scales=(0.1,) * 3, axis=3), "3 scales along axis 3, expected 1, or 3"),
    "weights' type": (conv(np.ones((3, 1, 1, 2), np.int16)), "is int16, expected int8 or int4"),
    "axis": (
        one("SUM", out=(1, 4), constants=[(np.array([9], INT32),)], options="ReducerOptions"),
        "its axes [9] do not fit net/tensor_0 of [1, 4, 4, 2]",
    ),
    "pool": (one("MAX_POOL_2D", scale=0.3, options="Pool2DOptions"), "differ in scale or zero"),
    "pad": (
        one("PAD", constants=[(np.array([[1, 0], [0, 0], [0, 0], [0, 0]], INT32),)]),
        "it pads the batch axis",
    ),
    "paddings": (one("PAD", constants=[(-np.ones((4, 2), INT32),)]), "do not fit net/tensor_0"),
    "concatenation": (one("CONCATENATION", options="ConcatenationOptions"), "along the batch axis"),
    "difference": (
        one("SUB", (1, 16, 4, 4), options="SubOptions",
            constants=[(EACH.reshape(1, 16, 4, 4), 301 / 4096, -3)]),
        "a value of net/tensor_1, which is subtracted, is not rounded as its negative is",
    ),
    "slice": (
        one("SLICE", constants=[(np.array(n, INT32),) for n in ([0, 1, 0, 0], [1, 4, 4, 2])]),
        "it takes [1, 2, 3, 4] along axis 1 of net/tensor_0, which has 4: that is nothing, or too",
    ),
    "parts": (
        one("SPLIT_V", constants=[(np.array([3], INT32),), (np.array(1, INT32),)]),
        "its parts [3] do not make 4",
    ),
    "broadcast": (
        one("BROADCAST_TO", out=(1, 4, 5, 2), constants=[(np.array([1, 4, 5, 2], INT32),)]),
        "[1, 4, 4, 2] does not broadcast to [1, 4, 5, 2]",
    ),
    "order": (one("TRANSPOSE", constants=[(np.ones(4, INT32),)]), "its order [1, 1, 1, 1] does"),
    "reshape": (one("RESHAPE", out=(1, 7)), "reshape_0: (4, 4, 2) cannot be reshaped to (7,)"),
    "bytes": (
        one("PAD", constants=[(np.zeros(3, np.int8), 0.1)]),
        "net/tensor_1 is int8, expected int32 or int64",
    ),
    "shuffled": (
        one(
            "FULLY_CONNECTED", (1, 2), constants=[(np.ones((2, 2), np.int8), 0.1)],
            options="FullyConnectedOptions", WeightsFormat=1,
        ),
        "its weights are shuffled",
    ),
    "too few inputs": (one("ADD", options="AddOptions"), "its input 1 is missing"),
    "nothing": (Writer([], []).content([], []), "the model has no outputs"),
    "order of operators": (
        linked(("RELU", 1, 2), ("RELU", 0, 1)), "nothing before it produces net/tensor_1",
    ),
    "many": (partial(linked, *[("RELU", 0, 1)] * 20_000), "the model has 20,000 operators"),
    "shared constants": (sharing(), "its constants are far larger than the file"),
    **{f"{c!r}": (c, "is no .tflite file") for c in (b"", b"TFL3", b"\0" * 64, b"PK\3\4" * 9)},
    "damaged": (b"\x10\0\0\0TFL3", "damaged"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, tmp_path: Path) -> None:
    content, part = REFUSED[what]
    message = told(content() if callable(content) else content, tmp_path)
    assert part in message
    assert "operator " in message or not part.startswith("its ")


def test_a_size_known_at_run_time(tmp_path: Path) -> None:
    net = Writer()
    x = net.tensor((1, 1, 4), 0.1, 0, signature=(-1, -1, 4))
    y = net.tensor((1, 1, 4), 0.1, 0, signature=(-1, -1, 4))
    net.operator("RELU", [x], [y])
    message = told(net.content([x], [y]), tmp_path)
    assert "net/tensor_1 has the shape [-1, -1, 4]: sizes that are only known at run" in message
    for tensor in net.tensors:  # a free batch axis is everybody's
        tensor["signature"] = (-1, 1, 4)
    assert len(imported(net.content([x], [y]), tmp_path).operators) == 1


def test_names_are_fit_for_messages_and_c_comments() -> None:
    assert printable('a"b\\c\nd\u202ee*/<f>') == "a_b_c_d_e_/_f_"
    assert len(printable("x" * 500)) == 60


def file(
    vtable_bytes: int = 6, table_bytes: int = 8, field: int = 4, back: int = 8, ahead: int = 4,
    count: int = 3, items: bytes = b"\1\2\3",
) -> bytes:  # fmt: skip
    """A table at byte 16 whose field 0 is a vector at byte 24."""
    vtable = struct.pack("<HHHxx", vtable_bytes, table_bytes, field)
    return struct.pack("<I4s8siiI", 16, b"TFL3", vtable, back, ahead, count) + items


def test_reads_what_is_there() -> None:
    """A field that is left out has its default."""
    table = root(file())
    assert bytes(table.raw(0)) == b"\1\2\3"
    assert table.numbers(0, "u1", 3) == (1, 2, 3)
    assert table.text(0) == "\1\2\3"
    assert table.scalar(0, "i32") == 4
    assert table.scalar(0, "i8") == 4
    for table in (root(file(field=0)), root(file(vtable_bytes=4))):
        assert table.scalar(0, "f32", 1.5) == 1.5
        assert table.table(0) is None
        assert table.numbers(0, "i4", 8) == ()
        assert table.count(0) == 0
    assert root(file()).scalar(7, "u8", 9) == 9


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (file(count=4), "4 items do not fit into it"),
        (file(count=0xFFFFFFFF), "4294967295 items do not fit into it"),
        (file(ahead=-1), "an offset leads to byte 4294967315"),
        (file(ahead=8), "an offset leads to byte 28"),
        (file(back=-1000), "an offset leads to byte 1016"),
        (file(back=1000), "an offset leads to byte -984"),
        (file(field=7), "a field ends outside its table"),
        (file(table_bytes=0), "a field ends outside its table"),
        (file()[:20], "an offset leads to byte 20"),
        (file()[:3], "an offset leads to byte 0"),
    ],
)
def test_refuses_what_leads_out_of_the_file(content: bytes, complaint: str) -> None:
    with pytest.raises(ThimbleError, match=complaint):
        root(content).raw(0)


def test_limits() -> None:
    table = root(file())
    with pytest.raises(ThimbleError, match="a list has 3 entries, at most 2 fit"):
        table.numbers(0, "u1", 2)
    with pytest.raises(ThimbleError, match="3 items do not fit"):
        table.numbers(0, "i4", 3)
    with pytest.raises(ThimbleError, match="entry 5 of 1 is asked for"):
        root(file(count=1, items=b"\0" * 4)).item(0, 5)
    with pytest.raises(ThimbleError, match="leads to byte -4"):
        Table(b"\0" * 64, -4).raw(0)
