"""Inputs of an ONNX network that are an output of the call before."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from pipeline.errors import ThimbleError
from pipeline.importers.onnx import Onnx
from pipeline.importers.seen import seen
from pipeline.quantize.int8 import Int8
from pipeline.quantize.int8_qat import Int8Qat
from pipeline.sliding import Windows
from pipeline.strategies.ordinary import Ordinary
from tests.importers.onnx_models import Array, number, weights
from tests.importers.support import session
from tests.importers.test_states import L4, in_sequence
from tests.programs import refusal

CELL = """a# = Gemm(x#, w#, b#); s# = Squeeze(h#, zero); r# = MatMul(s#, u#); g# = Add(a#, r#)
    i#, f#, z#, o# = Split<axis=1>(g#, four); si# = Sigmoid(i#); sf# = Sigmoid(f#); tz# = Tanh(z#)
    so# = Sigmoid(o#); t# = Squeeze(c#, zero); p# = Mul(sf#, t#); q# = Mul(si#, tz#)
    e# = Add(p#, q#); te# = Tanh(e#); y# = Mul(so#, te#); hu# = Unsqueeze(y#, zero)
    cu# = Unsqueeze(e#, zero)"""


def saved(path: Path, ends: str, nodes: str, constants: dict[str, Array]) -> str:
    """A file of text as ``onnx.parser`` has it; ``ends``: "inputs => outputs"."""
    lines = nodes.replace("; ", "\n")
    head = f'<ir_version: 8, opset_import: ["": 17]>\nnet {ends} {{\n'
    made = onnx.parser.parse_model(f"{head}{lines}\n}}")
    made.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in constants.items()
    )
    onnx.save(made, path / "net.onnx")
    return str(path / "net.onnx")


def two_cells(path: Path) -> str:
    """Two LSTM cells, whose h and c are (layers, batch, values), as silero's voice detector."""
    held = {"two": np.array([1, 1]), "four": np.array([6] * 4), "zero": np.array([0]),
            "wo": weights(6, 1)}  # fmt: skip
    for n, inputs in (("0", 5), ("1", 6)):
        held |= {f"w{n}": weights(inputs, 24), f"u{n}": weights(6, 24), f"b{n}": weights(24)}
    cells = [CELL.replace("#", n) for n in "01"]
    nodes = ("h0, h1 = Split<axis=0>(h, two); c0, c1 = Split<axis=0>(c, two); "
             f"{cells[0]}; x1 = Identity(y0); {cells[1]}; hn = Concat<axis=0>(hu0, hu1); "
             "cn = Concat<axis=0>(cu0, cu1); v = Gemm(y1, wo); out = Sigmoid(v)")  # fmt: skip
    state = "float[2, batch, 6] h, float[2, batch, 6] c"
    made = "float[m, batch, n] hn, float[k, batch, l] cn"
    ends = f"(float[batch, 5] x0, {state}) => (float[batch, 1] out, {made})"
    return saved(path, ends, nodes, held)


def test_two_cells_are_what_onnxruntime_gives_call_by_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, random = two_cells(tmp_path), np.random.default_rng(0)
    pixels = random.integers(0, 256, (80, 5)).astype(np.uint8)
    run, (h, c), wanted = session(Path(file)), np.zeros((2, 2, 1, 6), np.float32), []
    for frame in pixels:
        given = {"x0": (frame[None] / 127.5 - 1).astype(np.float32), "h": h, "c": c}
        out, h, c = run.run(None, given)
        wanted.append(out[0])
    network = Onnx(file, input_range=(-1.0, 1.0)).float_graph()
    assert network is not None
    assert "model.state=[h:hn,c:cn]; model.state=[none] has all" in capsys.readouterr().err
    found = network.evaluate(torch.tensor(pixels, dtype=torch.float64)).numpy()
    np.testing.assert_allclose(found, np.array(wanted), rtol=0, atol=1e-5)
    method = Int8(images=60)
    graph = method.from_float(network, {"train_images": pixels})
    assert [each.read for each in graph.states] == ["h", "c"] and graph.state_bytes == 24
    stored, end = pixels.astype(np.int64) - 128, graph.tensors[graph.output]
    real = (graph.evaluate(stored) - end.zero_point) * end.scale[0]
    assert np.abs(real - np.array(wanted)).max() < 0.1 * np.ptp(wanted)
    rows = method.errors(network, {}, graph, {"train_images": pixels})
    assert min(row.sqnr_db for row in rows) > 15  # of both in sequence
    with pytest.raises(ThimbleError, match="quantize=int8_qat trains on images by themselves"):
        Int8Qat().from_float(network, {"train_images": pixels})
    with pytest.raises(ThimbleError, match=r"sliding.rows: .* keeps state"):
        Windows(2).graph(graph)
    in_sequence(Ordinary().plan(graph, L4), graph, stored[:12])
    shown = seen({"_target_": "pipeline.importers.onnx.Onnx", "path": file})["network"]
    assert [row["operator"] for row in shown[:3]] == ["input", "state", "state"]


def test_a_state_has_the_range_that_it_reaches_over_many_calls(tmp_path: Path) -> None:
    """h' = 0.9 h + x gets ten times as far as x."""
    ends = "(float[1, 4] x, float[1, 4] state) => (float[1, 4] y, float[1, 4] stateN)"
    file = saved(tmp_path, ends, "d = Mul(state, r); stateN = Add(d, x); y = Abs(d)",
                 {"r": number(0.9)})  # fmt: skip
    network = Onnx(file, input_range=(0.0, 1.0)).float_graph()
    data = {"train_images": np.full((100, 4), 255, np.uint8)}
    graph = Int8(observer="minmax").from_float(network, data)  # type: ignore[arg-type]
    (of,) = graph.states
    read, made = (graph.tensors[name] for name in (of.read, of.made))
    assert 9.5 < 255 * read.scale[0] < 10.5
    assert (read.scale, read.zero_point) == (made.scale, made.zero_point)


@pytest.mark.parametrize("state", ["h:xd k:sd", "h:sd k:y", "h:sd k:sd2"])
def test_what_is_kept_has_an_operator_and_a_quantization_of_its_own(
    state: str, tmp_path: Path
) -> None:
    """The input itself, sums of other scales, and what another state is, too."""
    nodes = ("xq = QuantizeLinear(x, s, z); xd = DequantizeLinear(xq, s, z)"
             "; hq = QuantizeLinear(h, s2, z); hd = DequantizeLinear(hq, s2, z); s0 = Add(xd, hd)"
             "; s1 = QuantizeLinear(s0, s3, z); sd = DequantizeLinear(s1, s3, z)"
             "; kq = QuantizeLinear(k, s, z); kd = DequantizeLinear(kq, s, z); t0 = Add(sd, kd)"
             "; t1 = QuantizeLinear(t0, s3, z); y = DequantizeLinear(t1, s3, z)"
             "; sd2 = Identity(sd)")  # fmt: skip
    held = {name: number(value) for name, value in (("s", 0.1), ("s2", 0.173), ("s3", 0.311))}
    four = "float[1, 4]"
    ends = f"({four} x, {four} h, {four} k) => ({four} y, {four} xd, {four} sd, {four} sd2)"
    file = saved(tmp_path, ends, nodes, {**held, "z": np.array(0, np.int8)})
    pairs = state.split()
    graph = Onnx(file, state=tuple(pairs), outputs=("y",)).graph()
    assert len({each.made for each in graph.states}) == 2
    stored, run = np.random.default_rng(0).integers(-60, 60, (9, 4)), session(Path(file))
    kept = dict.fromkeys("hk", np.zeros((1, 4), np.float32))
    for frame, found in zip(stored, graph.evaluate(stored), strict=True):
        made = run.run(None, {"x": (frame[None] * 0.1).astype(np.float32), **kept})
        results = dict(zip(("y", "xd", "sd", "sd2"), made, strict=True))
        kept = {pair[0]: results[pair[2:]] for pair in pairs}
        assert np.abs(found * 0.311 - results["y"]).max() < 1


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("h-hn", "model.state=[h-hn]: give an input and the output that it is in the next call"),
        ("k:hn", "model.state=[k:hn]: there is no input k; there are x0, h, c"),
        ("h:nowhere", "model.state=[h:nowhere]: there is no tensor nowhere; there are "),
        ("h:hn h:cn", "model.state=[h:cn]: h is in two pairs: each state has an input and"),
        ("h:hn c:hn", "model.state=[c:hn]: hn is in two pairs"),
        ("h:hn c:cn x0:out", "model.state: all inputs are states, x0, h, c: one at least"),
        ("h:hn c:y1", "the state c: it is [2, 1, 6], and [1, 6] for the next call: one shape is"),
    ],
)
def test_pairs_that_mean_nothing(state: str, said: str, tmp_path: Path) -> None:
    told = refusal(Onnx(two_cells(tmp_path), state=tuple(state.split())).float_graph)
    assert said in told and "\n" not in told
