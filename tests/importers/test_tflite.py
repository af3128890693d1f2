"""int8 .tflite files: every operator byte by byte against the tflite-micro interpreter."""

import sys
from dataclasses import replace
from math import erf, floor
from pathlib import Path

import numpy as np
import pytest
import yaml
from tflite.ActivationFunctionType import ActivationFunctionType

from pipeline import passes
from pipeline.artifacts import read_npz, write_npz
from pipeline.datasets.nothing import Nothing
from pipeline.errors import ThimbleError
from pipeline.frames import stored
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.home import ROOT
from pipeline.importers import tflite_states
from pipeline.importers.tflite import TFLite, supported
from tests.comparing import equal
from tests.importers.tflite_cases import CASES, dilated, unary
from tests.importers.tflite_networks import network
from tests.importers.tflite_reference import assert_equal, imported, reference
from tests.importers.tflite_writer import VALID, Table, Writer
from tests.programs import said
from tests.public_models import LACKING, MODELS, folder
from tests.tiers import quick

MLPERF_TINY = {
    "ad01_int8": (10, "dense_1", 264_192),
    "kws_ref_model": (13, "depthwise_conv2d", 2_656_768),
    "pretrainedResnet_quant": (16, "conv2d_1", 12_501_632),
    "vww_96_int8": (31, "depthwise_conv2d", 7_489_664),
}
"""Operators, what Keras calls the second one, and multiply–accumulates as published."""


def test_every_supported_operator_has_a_case() -> None:
    # DEQUANTIZE ends some of the networks, SELECT_V2 compares, others stand alone below
    other = {"DEQUANTIZE", "TILE", "RELU_N1_TO_1", "RELU_0_TO_1", "GELU", "CAST", "SELECT",
             "SELECT_V2", "SIGN", "POW", "LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT",
             "EMBEDDING_LOOKUP", "CONV_3D", "DENSIFY", *tflite_states.OPERATORS}  # fmt: skip
    assert {*CASES} | other == set(supported())
    assert all(supported().values())


def test_data_may_be_in_known_units(tmp_path: Path) -> None:
    net = Writer()
    x, y = net.tensor((1, 4), 0.1, 3), net.tensor((1, 4), 0.1, 0)
    content = net.alone("RELU", x, [], y)
    graph = imported(content, tmp_path, input_range=(-5.0, 5.0))
    plain = imported(content, tmp_path)
    raw = np.array([[[[0, 127, 128, 255]]]], np.uint8)
    source = graph.tensors[graph.input]
    assert stored(raw, source).tolist() == [[-47, 3, 3, 53]]
    assert stored(raw, plain.tensors[plain.input]).tolist() == [[-128, -1, 0, 127]]
    assert graph.hash == plain.hash
    assert (graph.name, source.name, source.shape) == ("net", "net/tensor_0", (4,))
    assert source.scale == pytest.approx((0.1,)) and source.zero_point == 3
    with pytest.raises(ThimbleError, match="give \\[low,high\\]"):
        imported(content, tmp_path, input_range=(1.0,))


SEEDS = quick(1, [range(12), range(1000, 1400)], ci=0)


@pytest.mark.parametrize("seeds", SEEDS, ids=len)
@pytest.mark.parametrize("kind", [*CASES, "network"])
def test_operator_or_network_equals_tflite_micro(kind: str, seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        content = CASES.get(kind, network)(np.random.default_rng(seed))
        graph = imported(content, tmp_path)
        assert_equal(content, graph, 4, seed)
        names = [op.name for op in graph.operators]
        assert len(set(names)) == len(names) and all(name.isidentifier() for name in names)


ALONE = {
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
    "GELU": lambda x: x * (1 + np.vectorize(erf)(x / 2**0.5)) / 2,
    "EXP": np.exp,
    "SIN": np.sin,
    "SQUARE": np.square,
}


@pytest.mark.parametrize("kind", ALONE)
def test_functions_of_int8_that_tflite_micro_lacks(kind: str, tmp_path: Path) -> None:
    """Rounded once."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        content = unary(kind, rng)
        graph = imported(content, tmp_path)
        source, target = graph.tensors[graph.input], graph.tensors[graph.output]
        each = np.arange(-128, 128).repeat(2)[: source.size * 2].reshape(-1)
        frame = np.resize(each, source.shape)[None]
        real = ALONE[kind]((frame - source.zero_point) * source.scale[0])
        wanted = np.clip(real / target.scale[0] + target.zero_point, -128, 127)
        assert abs(graph.evaluate(frame).reshape(wanted.shape) - wanted).max() < 0.502


def test_quotients_of_two_are_within_a_step_of_tflite_micro(tmp_path: Path) -> None:
    net = Writer()
    a, b = net.tensor((1, 250), 0.05, 3), net.tensor((1, 250), 0.02, -7)
    y = net.tensor((1, 250), 0.07, 5)
    net.operator("DIV", [a, b], [y], "DivOptions")
    content, steps = net.content([a, b], [y]), np.r_[-128:-7, -6:123]
    graph = imported(content, tmp_path)
    above = np.random.default_rng(0).integers(30, 128, (20, 250))
    frames = np.hstack([above, np.tile(steps, (20, 1))])
    found = graph.evaluate(frames).reshape(20, -1)
    assert abs(found - reference(content, frames, graph)).max() <= 1
    real = (above - 3) * 0.05 / ((steps + 7) * 0.02) / 0.07 + 5
    assert abs(found - real.clip(-128, 127)).max() < 1


def test_blocks_with_padding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conv = imported(dilated(np.random.default_rng(4), 2), tmp_path).operators[0]
    assert isinstance(conv, Conv2d) and conv.dilation == (3, 2)
    assert conv.padding == (2, 0, 2, 1)
    ints = Writer.ints
    monkeypatch.setattr(Writer, "ints", lambda net, e: ints(net, [e] if np.ndim(e) == 2 else e))
    with pytest.raises(ThimbleError, match="SPACE_TO_BATCH_ND"):  # pads and crops of three axes
        imported(dilated(np.random.default_rng(4), 2), tmp_path)


def test_sparse_weights(tmp_path: Path) -> None:
    """Blocks of 1x2, of which each row lists those that are not 0."""
    dense = np.array([[0, 0, 5, -3, 0, 0], [0] * 6, [1, 2, 0, 0, 0, 7], [0, 0, 9, 0, 4, 4]], "i1")
    kept = dense.reshape(4, 3, 2).any(2)
    segments = Table("Int32Vector", Values=np.append(0, kept.sum(1).cumsum()).astype("i4"))
    places = Table("Uint8Vector", Values=np.nonzero(kept)[1].astype("u1"))
    lists = {"ArraySegments": segments, "ArrayIndicesType": 3, "ArrayIndices": places}
    sizes = {"DenseSize": 4}, {"Format": 1, "ArraySegmentsType": 1, **lists}, {"DenseSize": 2}
    levels = [Table("DimensionMetadata", **each) for each in sizes]
    axes = {"TraversalOrder": np.arange(3, dtype="i4"), "BlockMap": np.array([1], "i4")}
    net = Writer()
    x, y, w = (net.tensor((1, n), 0.1) for n in (6, 4, 24))
    net.tensors[w]["dims"] = dense.shape
    held = net.constant(dense.reshape(4, 3, 2)[kept], 0.1)
    sparsity = Table("SparsityParameters", **axes, DimMetadata=levels)
    net.tensors[held] |= {"dims": dense.shape, "sparsity": sparsity}
    net.operator("DENSIFY", [held], [w], "DensifyOptions")
    net.operator("FULLY_CONNECTED", [x, w], [y], "FullyConnectedOptions")
    graph = imported(net.content([x], [y]), tmp_path)
    equal(graph.constants[graph.operators[0].parameters[0]], dense)


def test_rows_of_a_constant(tmp_path: Path) -> None:
    """An embedding: the whole numbers below 7 choose, others do as the last one does."""
    net = Writer()
    x, real, chosen = (net.tensor((1, 5), s, 0, t) for s, t in ((1.0, "INT8"), ((), "FLOAT32"),
                                                                ((), "INT32")))  # fmt: skip
    table = np.random.default_rng(0).integers(-128, 128, (7, 3)).astype(np.int8)
    y = net.tensor((1, 5, 3), 0.1, 4)
    net.operator("DEQUANTIZE", [x], [real])
    net.operator("CAST", [real], [chosen])
    net.operator("GATHER", [net.constant(table, 0.1, 4), chosen], [y], "GatherOptions")
    graph = imported(net.content([x], [y]), tmp_path)
    frame = np.array([[6, 0, 3, 3, 1]])
    assert (graph.evaluate(frame)[0] == table[frame[0]]).all()


def mlperf_tiny(name: str) -> tuple[bytes, Graph]:
    path = MODELS / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(LACKING)
    return path.read_bytes(), TFLite(path=str(path)).graph()


@pytest.mark.parametrize("count", quick(1, [4, 1000], ci=0))
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_mlperf_tiny(name: str, count: int) -> None:
    content, graph = mlperf_tiny(name)
    assert (len(graph.operators), graph.operators[1].name, graph.macs) == MLPERF_TINY[name]
    assert_equal(content, graph, count, seed=1)


@pytest.mark.parametrize("name", quick(1, ["fomo_face_detection", "yolo_v5_224_nano"]))
def test_detectors(name: str) -> None:
    """As they are in OpenMV's repository, and with functions of one value as tables."""
    path = folder("openmv") / f"{name}.tflite"
    if not path.is_file():
        pytest.skip("OpenMV's detectors are not here: set THIMBLE_MODELS to their folder")
    graph = TFLite(path=str(path)).graph()
    for some in ((), ("fold_pad", "fold_tables", "dead_channels")):
        assert_equal(path.read_bytes(), passes.applied(graph, some), 3)


@pytest.mark.parametrize("path", ["missing.tflite", ".", "a\0b", ""])
def test_no_such_file(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ThimbleError, match=r"model\.path="):
        TFLite(path=path).graph()


OUTS = 240


def on_the_edge(rng: np.random.Generator, dense: bool) -> bytes:
    """Sums that are biases alone, each next to a half of the output's scale."""
    in_scale, w_scale = (float(np.float32(s)) for s in rng.uniform(1e-4, 2e-4, 2))
    out_scale = float(np.float32(rng.uniform(0.05, 0.2)))
    halves = (np.arange(OUTS) - OUTS / 2 + 0.5) / (in_scale * w_scale / out_scale)
    bias = np.rint(halves + rng.integers(-3, 4, OUTS)).astype(np.int32)
    net = Writer()
    x = net.tensor((1, 1, 1, 2), in_scale, 0)
    y = net.tensor((1, OUTS) if dense else (1, 1, 1, OUTS), out_scale, 0)
    weights = np.zeros((OUTS, 2) if dense else (OUTS, 1, 1, 2), np.int8)
    inputs = [x, net.constant(weights, w_scale), net.constant(bias, in_scale * w_scale)]
    if dense:
        net.operator("FULLY_CONNECTED", inputs, [y], "FullyConnectedOptions")
    else:
        net.operator("CONV_2D", inputs, [y], "Conv2DOptions", **VALID)
    return net.content([x], [y])


@pytest.mark.parametrize("dense", [True, False])
def test_requantization_next_to_halves(dense: bool, tmp_path: Path) -> None:
    for seed in range(40):
        content = on_the_edge(np.random.default_rng(seed), dense)
        graph, frame = imported(content, tmp_path), np.zeros((1, 1, 1, 2), np.int64)
        assert (graph.evaluate(frame).reshape(1, -1) == reference(content, frame)).all(), seed


@pytest.mark.parametrize("kind", ["fused", "alone"])
def test_bounds_next_to_halves(kind: str, tmp_path: Path) -> None:
    """Of scales for which 6 / scale rounds to another integer in float32 than in float64."""
    scales = [float(np.float32(6 / (k + 0.5))) for k in range(20, 120)]
    scales = [s for s in scales if floor(6 / s + 0.5) != floor(np.float32(6) / np.float32(s) + 0.5)]
    assert len(scales) > 10
    for scale in scales:
        net = Writer()
        x, y = (net.tensor((1, 1, 1, 1), scale, 0) for _ in range(2))
        if kind == "alone":
            net.operator("RELU6", [x], [y])
        else:
            net.operator(
                "MAX_POOL_2D", [x], [y], "Pool2DOptions", FilterHeight=1, FilterWidth=1, **VALID,
                FusedActivationFunction=ActivationFunctionType.RELU6,
            )  # fmt: skip
        content, frame = net.content([x], [y]), np.full((1, 1, 1, 1), 127)
        ours = imported(content, tmp_path).evaluate(frame)
        assert int(ours.item()) == int(reference(content, frame).item())


PROGRAM = "import sys; from stages import quantize; quantize.main(); print('torch' in sys.modules)"


def test_a_tflite_file_needs_no_torch(tmp_path: Path) -> None:
    net = Writer()
    x, y = (net.tensor((1, 4), 0.1, 0) for _ in range(2))
    (tmp_path / "net.tflite").write_bytes(net.alone("RELU", x, [], y))
    path, target = str(tmp_path / "net.tflite"), "pipeline.importers.tflite.TFLite"
    config = {
        "model": {"_target_": target, "name": "net", "path": path},
        "quantize": {"_target_": "pipeline.quantize.int8.Int8", "name": "int8"},
        "passes": ["constants"],
        "sliding": {"rows": 0},
    }
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(config))
    write_npz(tmp_path / "data" / "dataset.npz", Nothing().arrays())
    command, env = [sys.executable, "-c", PROGRAM], {"PYTHONPATH": str(ROOT)}
    assert said(command, tmp_path, env=env) == "False\n"
    assert Graph.load(tmp_path).operators and not read_npz(tmp_path / "float_labels.npz")


def test_tile_and_shapes_that_a_file_computes(tmp_path: Path) -> None:
    """tflite-micro has neither: the height, 3, is a count; a size is open."""
    net = Writer()
    x, tiled = (net.tensor(dims, 0.1, 3) for dims in ((1, 3, 2, 4), (1, 9, 2, 8)))
    y = net.tensor((1, 1, 8), 0.1, 3, signature=(-1, -1, 8))
    held, shape, counts = (net.tensor((n,), (), 0, "INT32") for n in (1, 4, 4))
    one, two = net.ints([1]), net.ints([2])
    net.operator("SHAPE", [x], [shape])
    net.operator("STRIDED_SLICE", [shape, one, two, one], [held], "StridedSliceOptions")
    net.operator("CONCATENATION", [one, held, one, two], [counts], "ConcatenationOptions")
    net.operator("TILE", [x, counts], [tiled])
    frame = np.arange(24).reshape(1, 3, 2, 4)
    net.operator("RESHAPE", [tiled, net.ints([1, -1, 8])], [y])
    graph = imported(net.content([x], [y]), tmp_path)
    assert (graph.evaluate(frame) == np.tile(frame, (1, 3, 1, 2)).reshape(1, 18, 8)).all()
    with pytest.raises(ThimbleError, match="two operators of one name"):
        replace(graph, operators=[replace(op, name="same") for op in graph.operators])
