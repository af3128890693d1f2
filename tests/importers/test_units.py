"""``nn_quantize(real)`` of the header is what a network takes, whatever its first layer absorbs,
and ``nn_dequantize`` what it gives; ``Predictor`` says the same."""

from __future__ import annotations

import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.codegen import generate
from pipeline.frames import stored
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import DType, Tensor
from pipeline.importers.onnx import Onnx
from pipeline.quantize.int8 import Int8
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets.predictor import Predictor
from tests.codegen.int8.support import host
from tests.codegen.support import WARNINGS, write
from tests.comparing import equal
from tests.importers.onnx_models import Array
from tests.importers.unit_networks import FIRST, KINDS, SHAPE, Limits, made
from tests.tiers import quick

MAIN = r"""
#include "model.h"
#include <stdio.h>
/* reals on stdin; integers of the input and reals of the output on stdout */
int main(void) {
    float real[NN_INPUT_COUNT];
    while (fread(real, sizeof *real, NN_INPUT_COUNT, stdin) == NN_INPUT_COUNT) {
        nn_init();
        for (int n = 0; n < NN_INPUT_COUNT; n++) {
            const nn_input_t value = nn_quantize(real[n]);
            fwrite(&value, 1, 1, stdout);
            if (nn_feed((const uint8_t *)&value, 1) != NN_OK) return 1;
        }
        if (nn_invoke() != NN_OK) return 2;
        for (int n = 0; n < NN_OUTPUT_COUNT; n++) {
            const float out = nn_dequantize(nn_output()[n]);
            fwrite(&out, sizeof out, 1, stdout);
        }
    }
    return 0;
}
"""
RANGES = ((0.0, 1.0), (-1.0, 1.0), (-4.0, 4.0), (0.0, 255.0), (2.0, 3.0))
EVERY = [*product(KINDS, FIRST, RANGES)]
CHOSEN = [
    ("float ONNX", "unpadded", RANGES[0]), ("float ONNX", "batch-normed", RANGES[1]),
    ("PyTorch", "pooled", RANGES[2]), ("PyTorch", "scaled", RANGES[3]),
    ("QDQ", "scaled", RANGES[0]), ("QOperator", "dense", RANGES[2]),
    ("TFLite", "padded", RANGES[1]), ("float ONNX", "padded", RANGES[4]),
]  # fmt: skip


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
    return (
        integers.view(takes.dtype.stored).reshape(-1, *takes.shape),
        outputs.view(np.float32).reshape(-1, *graph.tensors[graph.output].shape),
    )


def data(limits: Limits) -> tuple[Array, Array]:
    """Bytes (n, h, w, c) and what they mean, (n, c, h, w)."""
    raw = np.random.default_rng(1).integers(0, 256, (60, *SHAPE[2:], SHAPE[1])).astype(np.uint8)
    raw[0], raw[1] = 0, 255
    low, high = limits
    return raw, (low + raw.transpose(0, 3, 1, 2) * (high - low) / 255).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "first", "limits"),
    quick(CHOSEN[::2], sorted(EVERY, key=lambda each: each not in CHOSEN), ci=12),
)
def test_reals_in_reals_out(tmp_path: Path, kind: str, first: str, limits: Limits) -> None:
    raw, real = data(limits)
    graph = KINDS[kind](tmp_path, first, limits, raw, real)
    takes, gives = graph.tensors[graph.input], graph.tensors[graph.output]
    given = real.transpose(0, 2, 3, 1).reshape(-1, *takes.shape)
    if takes.shape == (given[0].size,):
        given = real.reshape(-1, given[0].size)
    integers, found = run(tmp_path, graph, given)
    if kind in ("float ONNX", "PyTorch"):  # as whoever feeds the data's bytes has them
        equal(integers, stored(raw, takes))
        assert len(np.unique(integers)) == 256
    equal(integers, takes.quantized(given))
    assert np.allclose(found, gives.real(graph.outputs(integers.astype(np.int64))), rtol=1e-6)
    with torch.no_grad():
        expected = made(first, *limits)(torch.from_numpy(real)).numpy().reshape(found.shape)
    assert np.sqrt(np.square(found - expected).mean()) < 0.06 * expected.std(), kind


def test_a_mean_first(tmp_path: Path) -> None:
    """onnxruntime's answer to a half everywhere, in a file that a user had."""
    network = Onnx(str(Path(__file__).parent / "cases" / "globalavg_flatten_gemm.onnx"))
    graph = Int8().from_float(network.float_graph())  # type: ignore[arg-type]
    takes, unit = graph.tensors[graph.input], graph.tensors[graph.output].scale[0]
    _, found = run(tmp_path, graph, np.full((1, *takes.shape), 0.5))
    assert np.abs(found[0] - (2.0096, 1.0107, -0.2953)).max() < 2 * unit


def test_the_predictor_has_the_same_units(tmp_path: Path) -> None:
    raw, real = data((-4.0, 4.0))
    graph = KINDS["PyTorch"](tmp_path, "unpadded", (-4.0, 4.0), raw, real)
    given = real.transpose(0, 2, 3, 1)
    integers, outputs = run(tmp_path, graph, given)
    predictor = Predictor.build(graph, Ordinary().plan(graph, host()), host())
    equal(predictor.input.quantized(given), integers)
    found = predictor.output.real(predictor.predict(integers))
    np.testing.assert_allclose(found, outputs, rtol=1e-6)


def test_what_no_integer_means() -> None:
    tensor = Tensor("x", (1,), DType.parse("int8")).spread((-1.0, 1.0))
    given = np.array([-np.inf, np.nan, -1.01, 0.0, 1.01, np.inf, 1e38])
    assert tensor.quantized(given).tolist() == [-128, -128, -128, -1, 127, 127, 127]
