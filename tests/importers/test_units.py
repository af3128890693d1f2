"""``nn_quantize(real)`` of the header is what a network takes, whatever its first layer absorbs,
and ``nn_dequantize`` what it gives."""

import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.codegen import generate
from pipeline.frames import stored
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import DType, Tensor
from pipeline.importers.onnx import Onnx
from pipeline.importers.torch_model import TorchModel
from pipeline.models.network import state_arrays
from pipeline.quantize.int8 import Int8
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import host
from tests.codegen.support import WARNINGS, write
from tests.comparing import equal
from tests.importers.onnx_models import Array, number, quantized, small_network
from tests.importers.torch_modules import Of
from tests.tiers import quick

MAIN = Path(__file__).with_name("units.c").read_text()
RANGES = ((0.0, 1.0), (-1.0, 1.0), (-4.0, 4.0), (0.0, 255.0), (2.0, 3.0))
Limits = tuple[float, float]


def scaled(low: float, high: float) -> nn.Module:
    """The network's own normalization, to -1…1."""
    return Of(lambda m, x: x * (2 / (high - low)) - (high + low) / (high - low))


def normed(low: float, high: float) -> nn.Module:
    norm = nn.BatchNorm2d(3)
    norm.running_mean = torch.tensor([0.4, 0.5, 0.6]) * (high - low) + low
    norm.running_var = (torch.tensor([0.2, 0.3, 0.4]) * (high - low)) ** 2
    return norm


FIRST: dict[str, Callable[[float, float], list[nn.Module]]] = {
    "unpadded": lambda *limits: [nn.Conv2d(3, 4, 3), nn.ReLU()],
    "batch-normed": lambda *limits: [normed(*limits), nn.Conv2d(3, 4, 3, padding=1)],
    "scaled": lambda *limits: [scaled(*limits), nn.Conv2d(3, 4, 3, padding=1)],
    "padded": lambda *limits: [nn.Conv2d(3, 4, 3, padding=1), nn.ReLU()],
    "dense": lambda *limits: [nn.Flatten(), nn.Linear(3 * 6**2, 8), nn.ReLU()],
    "pooled": lambda *limits: [nn.AvgPool2d(2), nn.Conv2d(3, 4, 2), nn.ReLU()],
    "batch-normed, unpadded": lambda *limits: [normed(*limits), nn.Conv2d(3, 4, 3)],
}


def made(first: str, low: float, high: float) -> nn.Sequential:
    """The network, from (n, 3, 6, 6) to (n, 3)."""
    torch.manual_seed(3)
    layers = FIRST[first](low, high)
    layers += [nn.Flatten()] * (first != "dense")
    size = nn.Sequential(*layers).eval()(torch.zeros(1, 3, 6, 6)).shape[1]
    return nn.Sequential(*layers, nn.Linear(size, 3)).eval()


def integers(first: str, limits: Limits, raw: Array) -> Graph:
    given = {"first": first, "low": limits[0], "high": limits[1]}
    own = TorchModel((6, 6, 3), 3, f"{__name__}:made", given, input_range=limits)
    return Int8().graph("net", own, state_arrays(own.build()), {"train_images": raw})


def run(folder: Path, graph: Graph, real: Array) -> tuple[Array, Array]:
    """(n, *input shape) -> the input's integers and the real outputs (n, *output shape)."""
    files = generate(graph, Ordinary().plan(graph, host()), host(), {})
    write(folder, {**files, "main.c": MAIN})
    command = ["cc", *WARNINGS, "model.c", "main.c", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True)
    given, takes = real.astype(np.float32).tobytes(), graph.tensors[graph.input]
    said = subprocess.run([folder / "program"], input=given, capture_output=True, check=True).stdout
    rows = np.frombuffer(said, np.uint8).reshape(len(real), -1)
    integers, outputs = (np.ascontiguousarray(part) for part in np.split(rows, [takes.size], 1))
    stored = integers.view(takes.dtype.stored).reshape(-1, *takes.shape)
    return stored, outputs.view(np.float32).reshape(-1, *graph.tensors[graph.output].shape)


def data(limits: Limits) -> tuple[Array, Array]:
    """Bytes (n, h, w, c) and what they mean, (n, c, h, w)."""
    raw = np.random.default_rng(1).integers(0, 256, (60, 6, 6, 3)).astype(np.uint8)
    raw[0], raw[1] = 0, 255
    low, high = limits
    return raw, (low + raw.transpose(0, 3, 1, 2) * (high - low) / 255).astype(np.float32)


@pytest.mark.parametrize(
    ("limits", "first"),
    quick([(RANGES[n % 5], first) for n, first in enumerate(FIRST)], product(RANGES, FIRST), ci=4),
)
def test_reals_in_reals_out(tmp_path: Path, first: str, limits: Limits) -> None:
    raw, real = data(limits)
    graph = integers(first, limits, raw)
    takes, gives = graph.tensors[graph.input], graph.tensors[graph.output]
    given = real.transpose(0, 2, 3, 1)
    inputs, found = run(tmp_path, graph, given)
    equal(inputs, stored(raw, takes))  # as whoever feeds the data's bytes has them
    assert len(np.unique(inputs)) == 256
    equal(inputs, takes.quantized(given))
    assert np.allclose(found, gives.real(graph.evaluate(inputs.astype(np.int64))), rtol=1e-6)
    with torch.no_grad():
        expected = made(first, *limits)(torch.from_numpy(real)).numpy().reshape(found.shape)
    assert np.sqrt(np.square(found - expected).mean()) < 0.06 * expected.std()


def test_of_a_file_that_arrives_quantized(tmp_path: Path) -> None:
    """Its own scale and zero point, whatever the data's range is."""
    x = np.random.default_rng(0).random((40, 3, 8, 8)).astype(np.float32)
    path = quantized(small_network(), tmp_path, x - number(0.3))
    graph = Onnx(str(path), input_range=(-4.0, 4.0)).graph()
    given = x.transpose(0, 2, 3, 1)
    inputs, found = run(tmp_path, graph, given)
    takes, gives = graph.tensors[graph.input], graph.tensors[graph.output]
    equal(inputs, takes.quantized(given))
    assert takes.zero_point not in (0, -128) and takes.raw == (-4.0, 4.0)
    assert np.allclose(found, gives.real(graph.evaluate(inputs.astype(np.int64))), rtol=1e-6)


def test_a_mean_first(tmp_path: Path) -> None:
    """onnxruntime's answer to a half everywhere, in a file that a user had."""
    network = Onnx(str(Path(__file__).parent / "cases" / "globalavg_flatten_gemm.onnx"))
    graph = Int8().from_float(network.float_graph())  # type: ignore[arg-type]
    takes, unit = graph.tensors[graph.input], graph.tensors[graph.output].scale[0]
    _, found = run(tmp_path, graph, np.full((1, *takes.shape), 0.5))
    assert np.abs(found[0] - (2.0096, 1.0107, -0.2953)).max() < 2 * unit


def test_what_no_integer_means() -> None:
    tensor = Tensor("x", (1,), DType.parse("int8")).spread((-1.0, 1.0))
    given = np.array([-np.inf, np.nan, -1.01, 0.0, 1.01, np.inf, 1e38])
    assert tensor.quantized(given).tolist() == [-128, -128, -128, -1, 127, 127, 127]
