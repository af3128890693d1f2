"""Float .tflite files: the networks of the int8 tests on real numbers, against tflite-micro."""

import re
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline.errors import ThimbleError
from pipeline.graph.operators.lookup import Lookup
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.float_nodes import Weighted
from pipeline.importers.tflite import TFLite
from pipeline.importers.tflite_float import windows
from pipeline.plan.cost import timeline
from pipeline.strategies.in_place import Herringbone
from tests.codegen.support import frames, on_board
from tests.importers.test_tflite_unsigned import turned
from tests.importers.tflite_cases import CASES
from tests.importers.tflite_reals import COMPARED, NUMBERS, REAL
from tests.importers.tflite_reference import imported as integers
from tests.importers.tflite_reference import reference
from tests.importers.tflite_writer import Writer
from tests.targets.cortex_m import board_named
from tests.tiers import quick

NEXT = "only zeros are supported|whole multiples of height|QUANTIZE|those of int8 are|a batch of 1"
"""What int8 networks may have and float ones not yet."""


def floated(kind: str, seed: int, weights: str = "FLOAT32") -> bytes:
    """The case of ``seed`` on real numbers; ``weights``: see ``Writer.real``."""
    write = Writer.content
    return turned(lambda net, *ends: write(net.real(weights), *ends), kind, seed)


def imported(content: bytes, folder: Path) -> FloatGraph:
    (folder / "net.tflite").write_bytes(content)
    found = TFLite(str(folder / "net.tflite"), input_range=(-1.0, 1.0)).float_graph()
    assert found is not None
    return found


def outputs(graph: FloatGraph, pixels: np.ndarray) -> np.ndarray:
    return (
        graph.evaluate(torch.tensor(pixels, dtype=torch.float64)).reshape(len(pixels), -1).numpy()
    )


KINDS = sorted({*CASES, "network"} - {"QUANTIZE", "UNPACK", *REAL, *NUMBERS, *COMPARED})


@pytest.mark.parametrize("seeds", quick(1, [range(6), range(1000, 1100)], ci=0), ids=len)
@pytest.mark.parametrize("kind", quick(["MEAN", "TRANSPOSE", "network"], KINDS))
def test_a_float_network_computes_what_tflite_micro_does(
    kind: str, seeds: range, tmp_path: Path
) -> None:
    for seed in seeds:
        content = floated(kind, seed)
        try:
            graph = imported(content, tmp_path)
        except ThimbleError as error:
            assert re.search(NEXT, str(error)), error
            continue
        pixels = np.random.default_rng(seed).integers(0, 256, (3, *graph.shapes[graph.input]))
        ours = outputs(graph, pixels)
        wanted = reference(content, pixels / 127.5 - 1)
        most = 1e-5 * max(1.0, abs(wanted).max())
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=most, err_msg=f"seed {seed}")


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize(("weights", "most"), [("INT8", 1e-6), ("FLOAT16", 2e-3)])
def test_weights_of_fewer_bits_keep_their_values(
    kind: str, weights: str, most: float, tmp_path: Path
) -> None:
    for seed in range(8):
        whole = imported(floated(kind, seed), tmp_path)
        small = imported(floated(kind, seed, weights), tmp_path)
        pixels = np.random.default_rng(seed).integers(0, 256, (3, *whole.shapes[whole.input]))
        ours, wanted = (outputs(graph, pixels) for graph in (small, whole))
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=most * abs(wanted).max())
        kept = [node.steps is not None for node in small.nodes if isinstance(node, Weighted)]
        assert weights != "INT8" or all(kept)


def between(kinds: Sequence[str]) -> bytes:
    """Float operators between integers, a product of the first one's input; then a RELU."""
    net, flat = Writer(), (1, 256)
    x, y, out = (net.tensor(flat, *each) for each in ((0.03, -7), (0.02, 5), (0.04, 0)))
    real = [net.tensor(flat, dtype="FLOAT32") for _ in range(len(kinds) + 1)]
    net.operator("DEQUANTIZE", [x], real[:1])
    for kind, source, target in zip(kinds, real, real[1:], strict=False):
        net.operator(kind, [source, *(real[:1] if kind == "MUL" else [])], [target])
    net.operator("QUANTIZE", real[-1:], [y])
    net.operator("RELU", [y], [out])
    return net.content([x], [out])


KINDS_BETWEEN = [("ELU",), ("NEG", "LOGISTIC", "SQRT"), ("TANH", "ABS", "MUL")]


@pytest.mark.parametrize("kinds", KINDS_BETWEEN, ids=str)
def test_float_operators_between_integers_are_a_table(kinds: Sequence[str], tmp_path: Path) -> None:
    content = between(kinds)
    graph, given = integers(content, tmp_path), np.arange(-128, 128)[None]
    assert [type(op) for op in graph.operators] == [Lookup, Lookup]
    assert np.array_equal(graph.evaluate(given), reference(content, given))


def test_real_results_are_stored_in_16_bits(tmp_path: Path) -> None:
    net = Writer()
    x, y = net.tensor((1, 256), 0.03, -7), net.tensor((1, 256), dtype="FLOAT32")
    real, infinite = (net.tensor((1, 256), dtype="FLOAT32") for _ in range(2))
    net.operator("DEQUANTIZE", [x], [real])
    net.operator("EXP", [real], [y])
    net.operator("LOG", [real], [infinite])
    graph, given = integers(net.content([x], [y]), tmp_path), np.arange(-128, 128)[None]
    target = graph.tensors[graph.output]
    wanted = np.exp(0.03 * (given + 7)) / target.scale[0] + target.zero_point
    assert target.dtype.bits == 16 and abs(graph.evaluate(given) - wanted).max() < 0.51
    with pytest.raises(ThimbleError, match="values that are no finite numbers"):
        integers(net.content([x], [infinite]), tmp_path)


def volumes(
    shapes: Sequence[tuple[int, ...]], taps: Sequence[tuple[int, ...]], **how: int
) -> bytes:
    """A CONV_3D with random weights from each of ``shapes`` to the next."""
    rng, net = np.random.default_rng(0), Writer()
    ends = (0.03, 9), *((0.5, 4),) * len(taps)
    tensors = [net.tensor((1, *shape), *end) for shape, end in zip(shapes, ends, strict=True)]
    for (x, y), size in zip(pairwise(tensors), taps, strict=True):
        real, sums = (net.tensor(net.tensors[n]["dims"], (), 0, "FLOAT32") for n in (x, y))
        held = rng.standard_normal((*size, net.tensors[x]["dims"][4], net.tensors[y]["dims"][4]))
        weights = net.constant(held.astype(np.float32))
        net.operator("DEQUANTIZE", [x], [real])
        net.operator(
            "CONV_3D", [real, weights], [sums], "Conv3DOptions", StrideH=1, StrideW=1, **how
        )
        net.operator("QUANTIZE", [sums], [y])
    return net.content(tensors[:1], tensors[-1:])


def test_three_dimensions_between_integers(tmp_path: Path) -> None:
    """tflite-micro has none of it: PyTorch's real numbers."""
    content = volumes([(5, 6, 4, 2), (3, 6, 4, 3)], [(3, 2, 3)], StrideD=2)
    graph, frames = (
        integers(content, tmp_path),
        np.random.default_rng(1).integers(-128, 128, (9, 240)),
    )
    held = np.random.default_rng(0).standard_normal((3, 2, 3, 2, 3)).astype(np.float32)
    given = torch.tensor(0.03 * (frames.reshape(9, 5, 6, 4, 2) - 9)).permute(0, 4, 1, 2, 3)
    weights = torch.tensor(held).double().permute(4, 3, 0, 1, 2)
    padded = torch.nn.functional.pad(given, (1, 1, 0, 1, 1, 1))
    wanted = torch.nn.functional.conv3d(padded, weights, stride=(2, 1, 1)).permute(0, 2, 3, 4, 1)
    stored = (wanted / 0.5 + 4).clamp(-128, 127).reshape(9, -1).numpy()
    assert abs(graph.evaluate(frames.reshape(9, 30, 4, 2)).reshape(9, -1) - stored).max() < 1.1


@pytest.mark.parametrize("name", ["arduino", "nucleo_f446re"])
def test_volumes_in_place(name: str, tmp_path: Path) -> None:
    """No order takes less than what is there at first; as of images that lie side by side."""
    shapes = [(4, 5, 4, 3), (2, 3, 3, 3), (1, 2, 2, 2)]
    content = volumes(shapes, [(3, 3, 2), (2, 2, 2)], StrideD=1, Padding=1)
    graph, board = integers(content, tmp_path, stacked=True), board_named(name)
    given = frames(graph, 3)
    plan = Herringbone().plan(graph, board)
    on_board(
        tmp_path, graph, board, plan, given, expected=integers(content, tmp_path).evaluate(given)
    )
    assert max(moment.live_bytes for moment in timeline(plan)) == prod(shapes[0])


def test_variables_of_real_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=r"ASSIGN_VARIABLE \(operator \d+"):
        imported(floated("variable", 0), tmp_path)


def test_others_between_integers_are_refused(tmp_path: Path) -> None:
    for kind, said in (("SOFTMAX", "no function of one value"), ("RNN", "RNN: not supported")):
        with pytest.raises(ThimbleError, match=said):
            integers(between((kind,)), tmp_path)
    with pytest.raises(ThimbleError, match="its stride_w is 0, at least 1 is needed"):
        windows({"stride_h": 1, "stride_w": 0})
