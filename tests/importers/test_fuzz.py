"""Whatever a file holds: a graph, or one clear line; no other error, crash, hang or allocation.

``python -m tests.importers.test_fuzz FORMAT FIRST COUNT``, where FORMAT is one of ``FORMATS``,
tries it under limits of time and memory: a program of its own, so that a crash or an allocation
which fails is seen by who started it. Prints how often each outcome came; ends with 1 at the first
file that does otherwise.
"""

import json
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto

from pipeline.errors import ThimbleError
from pipeline.home import ROOT
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.lower import lower
from pipeline.importers.onnx import OPERATORS
from pipeline.importers.onnx_constants import FOLDS
from pipeline.importers.onnx_external import files
from pipeline.importers.quantizations import completed
from pipeline.importers.tflite import TFLite
from pipeline.quantize.int8 import Int8
from tests.importers import test_onnx_front, test_onnx_quantized
from tests.importers.onnx_models import N, imported, model, models, parsed, small_network
from tests.importers.tflite_cases import CASES
from tests.importers.tflite_networks import network
from tests.importers.tflite_writer import Random, Writer
from tests.programs import said
from tests.targets.line import damaged
from tests.tiers import quick

SECONDS = 10.0
EXTRA_BYTES = 800_000_000
"""Address space beyond what libraries take at the start."""
WORDS = (0, 1, 4, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)
NUMBERS = (0, -1, 1, 2, 3, 7, 100, 2**15, 2**20, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**63))


def harmed(content: bytes, rng: Random) -> bytes:
    """As on a bad line; or with hostile numbers, or offsets to elsewhere, for aligned words, where
    sizes and offsets are."""
    if rng.random() < 0.5:
        return damaged(content, rng) or b"\0"
    found = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        where = 4 * int(rng.integers(len(found) // 4))
        word = int(rng.integers(len(found))) if rng.random() < 0.3 else int(rng.choice(WORDS))
        found[where : where + 4] = word.to_bytes(4, "little")
    return bytes(found)


def absurd(net: Writer, rng: Random) -> None:
    """One thing in the network that makes no sense, in a file that is sound."""
    tensor, op = any_of(net.tensors, rng), any_of(net.operators, rng)
    number = int(rng.choice(NUMBERS[:11]))
    match int(rng.integers(9)):
        case 0:
            tensor["dims"] = [*tensor["dims"], number]
        case 1:
            dims = [*tensor["dims"], 1]
            dims[int(rng.integers(len(dims)))] = number
            tensor["dims"] = dims
        case 2:
            tensor["dims"] = tensor["dims"][1:]
        case 3:
            tensor["dtype"] = int(rng.integers(-2, 20))
        case 4:
            wild = np.float32(rng.choice([0, -1, 1e-45, 1e-30, 3e38, np.inf, np.nan, 1, 1e-3]))
            tensor["scales"] = np.full(int(rng.choice([0, 1, 1, 1, 2, 9])), wild)
        case 5:
            tensor["zeros"] = np.full(int(rng.choice([0, 1, 1, 2])), number * 3)
        case 6:
            side = "in" if rng.random() < 0.7 else "out"
            links = [*op[side], number]
            links[int(rng.integers(len(links)))] = int(rng.integers(-2, len(net.tensors) + 2))
            op[side] = links if rng.random() < 0.5 else links[:-1]
        case 7:
            op["kind"] = any_of(["SHAPE", "WHILE", "CUSTOM", "LSTM", *CASES], rng)
        case 8:
            flags = ("KeepDims", "KeepNumDims", "HalfPixelCenters", "AlignCorners", "AdjX", "AdjY")
            flags = (*flags, "TimeMajor")
            enums = ("Padding", "FusedActivationFunction", "Mode", "OutputType")
            most = dict.fromkeys(flags, 2) | dict.fromkeys(enums, 128)
            for name in [name for name in op["values"] if rng.random() < 0.5]:
                op["values"][name] = abs(number) % most[name] if name in most else number


def tflite(seed: int, real: bool = False) -> bytes:
    rng = np.random.default_rng(seed)
    write, nonsense = Writer.content, rng.random() < 0.5

    def content(net: Writer, *ends: Any) -> bytes:
        if real:
            net.real(("FLOAT32", "FLOAT16", "INT8")[seed % 3])
        if nonsense:
            absurd(net, rng)
        return write(net, *ends)

    with patch.object(Writer, "content", content):
        found = any_of([network, network, *CASES.values()], rng)(rng)
    return found if nonsense and rng.random() < 0.8 else harmed(found, rng)


@cache
def whole() -> list[bytes]:
    """Models of ONNX to damage, float and quantized."""
    made = [make(**case) for make, case in test_onnx_quantized.EVERY.values()]
    made += [test_onnx_front.case_model(name) for name in test_onnx_front.CASES]
    return [
        each.SerializeToString() for each in (*models().values(), *made, *made, small_network())
    ]


def any_of(items: Sequence[Any], rng: Random) -> Any:
    return items[int(rng.integers(len(items)))] if len(items) else None


def changed(content: bytes, rng: Random) -> bytes:
    """A valid file with other numbers, names or shapes in some places."""
    made = onnx.ModelProto.FromString(content)
    graph = made.graph
    for _ in range(int(rng.integers(1, 4))):
        value = NUMBERS[int(rng.integers(len(NUMBERS)))]
        node = any_of(graph.node, rng)
        attribute, held = any_of(node.attribute, rng), any_of(graph.initializer, rng)
        match int(rng.integers(8)):
            case 0 if attribute and attribute.ints:
                attribute.ints[rng.integers(len(attribute.ints))] = value
            case 0 if attribute:
                attribute.i = value
            case 1 if attribute:
                attribute.type = int(rng.integers(0, 12))
            case 2 if held and held.dims:
                held.dims[rng.integers(len(held.dims))] = value
            case 2 if held:
                held.dims.append(value)
            case 3 if held:
                held.data_type = int(rng.integers(0, 24))
            case 4 if node.input:
                others = [name for each in graph.node for name in (*each.input, *each.output)]
                node.input[rng.integers(len(node.input))] = any_of(others, rng)
            case 5:
                node.op_type = any_of(sorted((*OPERATORS, *FOLDS, "If", "LSTM")), rng)
            case 6 if dims := graph.input[0].type.tensor_type.shape.dim:
                dims[rng.integers(len(dims))].dim_value = value
            case 7 if held:
                held.raw_data = rng.bytes(len(held.raw_data))
    return made.SerializeToString()


def of_onnx(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    content = any_of(whole(), rng)
    return changed(content, rng) if rng.random() < 0.67 else harmed(content, rng)


def small(graph: FloatGraph) -> bool:
    return all(prod(graph.shapes[name]) < 1 << 16 for name in graph.inputs)


def import_tflite(path: Path, number: int) -> None:
    """The float network too; one in a hundred is quantized, if it takes small images."""
    network = TFLite(path=str(path))
    if (found := network.float_graph()) is None:
        network.graph()
    elif number % 100 == 0 and small(found):
        Int8(images=2).from_float(found)


def import_onnx(path: Path, number: int) -> None:
    """Lowered as well; the runner asks for the files beside it before any stage has looked."""
    assert files(path) == {}
    found = imported("net", parsed(path.read_bytes()), (0.0, 1.0))
    if found.given:
        lower(found, completed(found))
    elif number % 100 == 0 and small(found):
        Int8(images=2).from_float(found)


FORMATS: dict[str, tuple[Callable[[int], bytes], Callable[[Path, int], None]]] = {
    "tflite": (tflite, import_tflite),
    "float": (partial(tflite, real=True), import_tflite),
    "onnx": (of_onnx, import_onnx),
    "hostile": (lambda n: list(hostile().values())[n], lambda p, _: import_onnx(p, 0)),
}


def outcome(name: str, number: int, path: Path) -> str:
    """Return what importing a file ends in; raise anything but a ThimbleError of one line."""
    make, bring = FORMATS[name]
    path.write_bytes(make(number))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        bring(path, number)
    except ThimbleError as error:
        assert "\n" not in str(error) and 0 < len(str(error)) < 2000, error
        return str(error)
    except BaseException:
        print(f"seed {number}:", file=sys.stderr)
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return "read"


def late(*_: object) -> None:
    raise TimeoutError(f"an import took more than {SECONDS} s")


def main(name: str, first: str, count: str) -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, late)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + EXTRA_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    seeds = range(int(first), int(first) + int(count))
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        found = Counter(outcome(name, seed, Path(folder) / f"damaged.{name}") for seed in seeds)
    print(json.dumps(found))


def hostile() -> dict[str, bytes]:
    """Files made to exhaust a careless importer."""
    x = (1, 4, 9, 8)
    many = "; ".join(f"t{i} = Add({'x' if i == 0 else f't{i - 1}'}, x)" for i in range(3000))
    declared, external = (
        model("y = Add(x, w)", x, {"w": np.ones(1, np.float32)}) for _ in range(2)
    )
    declared.graph.initializer[0].dims[0] = 2**40
    held = external.graph.initializer[0]
    held.data_location = TensorProto.EXTERNAL
    held.external_data.add(key="location", value="/etc/passwd")
    deep = onnx.ModelProto()
    inner = deep.graph
    for _ in range(200):
        attribute = inner.node.add(op_type="If").attribute.add(name="then_branch")
        attribute.type = onnx.AttributeProto.GRAPH
        inner = attribute.g
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
        "more outputs than it says": model("a, b = Split<num_outputs = 1>(x); y = Add(a, b)", x),
        "nan scale": model(f"{quantized}; y = Abs(a)", x, {"s": np.float32("nan")}),
        "tiny scale": model(
            f"{quantized}; o = Conv(a, w); p = QuantizeLinear(o, t); y = DequantizeLinear(p, t)", x,
            {"s": np.float32(1e30), "t": np.float32(1e-38),
             "w": np.ones((1, 4, 1, 1), np.float32)}),
        "declared size": declared, "external data": external, "nested": deep,
    }  # fmt: skip
    return {name: each.SerializeToString() for name, each in made.items()}


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").is_file(), reason="memory is limited as Linux does it"
)


def fuzz(name: str, first: int, count: int) -> dict[str, int]:
    """Count how often each outcome came."""
    command = [sys.executable, "-W", "error", "-m", "tests.importers.test_fuzz", name]
    found: dict[str, int] = json.loads(said([*command, str(first), str(count)], ROOT))
    assert sum(found.values()) == count
    return found


@pytest.mark.parametrize(
    ("name", "first", "count"),
    quick(0, [("tflite", 0, 600), ("onnx", 0, 1_500), ("float", 0, 1000),
              *product(("tflite", "onnx", "float"), (10_000, 20_000), (10_000,))],
          ci=3),
)  # fmt: skip
def test_damaged_files(name: str, first: int, count: int) -> None:
    """Neither all whole nor all refused for the same: damage that nothing notices, and that is."""
    found = fuzz(name, first, count)
    assert found["read"] > count / 20 and (first or len(found) > count / 10)


def test_hostile_files() -> None:
    assert "read" not in fuzz("hostile", 0, len(hostile()))


if __name__ == "__main__":
    main(*sys.argv[1:])
