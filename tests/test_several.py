"""Networks of several inputs and outputs, from a file to a chip."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn

from pipeline import frames
from pipeline.codegen import generate
from pipeline.datasets.npz import Npz
from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.importers.onnx import Onnx
from pipeline.importers.torch_model import TorchModel
from pipeline.models.network import state_arrays
from pipeline.quantize.int8 import Int8
from pipeline.quantize.samples import test_frames as stored
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets.predictor import Predictor
from tests.codegen.support import Native, host, on_board
from tests.codegen.support import frames as random_frames
from tests.comparing import equal
from tests.graphs import Net
from tests.importers.onnx_models import model
from tests.importers.tflite_reference import assert_equal, imported
from tests.importers.tflite_writer import Writer
from tests.several import several
from tests.targets.cortex_m import board_named
from tests.tiers import quick


@pytest.mark.parametrize(
    ("seed", "board"), quick(1, [(41, board_named("arduino")), (43, board_named("nucleo_l4r5zi"))])
)
def test_on_a_simulated_chip(seed: int, board: Hardware, tmp_path: Path) -> None:
    graph = several(seed)
    on_board(tmp_path, graph, board, Joint().plan(graph, board))


def test_results_of_other_types_off_their_places_are_put_together(tmp_path: Path) -> None:
    net = Net((3, 3, 1))
    first, second = net.dense(3), net.dense(5, "image", dtype="int16")
    graph = replace(net.graph(), outputs=(first, second))
    plan = Ordinary().plan(graph, host())
    at = {first: 0, second: 6}  # nibbles: a byte off
    buffers = [
        replace(b, map=b.map.moved(at[b.name] - b.extent[0])) if b.name in at else b
        for b in plan.buffers
    ]
    given = random_frames(graph)
    equal(
        Native(tmp_path, graph, replace(plan, buffers=tuple(buffers)))(given), graph.evaluate(given)
    )


class Three(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.flat, self.long, self.out = nn.Conv2d(3, 4, 3), nn.Conv1d(2, 4, 3), nn.Linear(10, 3)

    def forward(self, image: Tensor, signal: Tensor, speed: Tensor) -> tuple[Tensor, Tensor]:
        parts = self.flat(image).relu().mean((2, 3)), self.long(signal).mean(2), speed
        return self.out(torch.cat(parts, 1)), parts[1]


def test_a_module_of_several_inputs() -> None:
    shapes = (("image", 6, 5, 3), ("signal", 8, 2), ("speed", 2))
    own = TorchModel(inputs=shapes, factory=f"{__name__}:Three", input_range=(-1, 1))
    network, rng = own.build(), np.random.default_rng(0)
    raw = [rng.integers(0, 256, (50, *shape)).astype(np.uint8) for _, *shape in shapes]
    joined = np.concatenate([part.reshape(50, 1, 1, -1) for part in raw], 3)
    graph = Int8().graph("net", own, state_arrays(network), {"train_images": joined})
    assert graph.inputs == ("image", "signal", "speed")
    real = [torch.from_numpy(part / 127.5 - 1).float().movedim(-1, 1) for part in raw]
    found = graph.evaluate(joined.reshape(50, -1).astype(np.int64) - 128).reshape(50, -1)
    with torch.no_grad():
        each, whole = network.network(*real), network(torch.from_numpy(joined).movedim(-1, 1))
    named = zip(graph.outputs, np.split(found, [3], 1), each, whole, strict=True)
    for made, part, one, other in ((graph.tensors[name], *rest) for name, *rest in named):
        assert torch.allclose(one, other, atol=1e-5)
        assert np.abs(made.real(part) - one.numpy()).max() <= 3 * made.scale[0]
    with pytest.raises(ThimbleError, match="give at least two by their names"):
        TorchModel(inputs=(("image", 6, 5, 3),))


def test_by_name_from_python_and_in_the_header() -> None:
    graph = several(4)
    plan, given = Joint().plan(graph, host()), random_frames(graph)
    half = given.shape[1] // 2
    predictor = Predictor(generate(graph, plan, host(), {}), graph)
    inputs = zip(predictor.inputs.items(), (given[:, :half], given[:, half:]), strict=True)
    named = {n: v.reshape(-1, *of.shape).astype(str(of.dtype)) for (n, of), v in inputs}
    found = predictor.by_name(named)
    assert tuple(found) == graph.outputs
    equal(np.concatenate([v.reshape(len(v), -1) for v in found.values()], 1), graph.evaluate(given))
    with pytest.raises(ThimbleError, match="takes image, image1: image is missing"):
        predictor.by_name({})
    with pytest.raises(ThimbleError, match="2 inputs, and this takes networks of"):
        predictor.predict(given)
    header = generate(graph, plan, host(), {})["model.h"]
    for line in ('INPUT_1_NAME "image1"', "INPUTS 2", "OUTPUTS 3", "OUTPUT_1_SHAPE 8"):
        assert f"#define NN_{line}" in header


def test_a_tflite_file_of_two_inputs_and_outputs_is_right_to_the_byte(tmp_path: Path) -> None:
    net = Writer()
    x, y, z, w = (net.tensor((1, 5), 0.1, zero, name=f"net/{zero}") for zero in (0, 3, -7, -8))
    net.operator("ADD", [x, y], [z])
    net.operator("RELU", [z], [w])
    graph = imported(net.content([y, x], [w, z]), tmp_path)
    assert (graph.inputs, graph.outputs) == (("net/3", "net/0"), ("net/-8", "net/-7"))
    assert_equal(net.content([y, x], [w, z]), graph, 40)


def test_a_float_network_is_quantized_with_arrays_by_the_names_of_its_inputs(
    tmp_path: Path,
) -> None:
    made = model("b = Relu(other); y = Concat<axis=1>(x, b); z = Neg(x)", (1, 2, 3, 4))
    made.graph.input.append(onnx.helper.make_tensor_value_info("other", 1, (1, 2, 3, 4)))
    made.graph.output.add(name="z")
    onnx.save(made, tmp_path / "net.onnx")
    rng = np.random.default_rng(0)
    shapes = {"train": (40, 3, 4, 2), "test": (4, 3, 4, 2)}
    arrays = {
        f"{part}_{name}": rng.integers(0, 256, shape, np.uint8)
        for part, shape in shapes.items()
        for name in ("x", "other")
    }
    labels = {f"{part}_labels": np.zeros(shape[0], np.uint8) for part, shape in shapes.items()}
    np.savez(tmp_path / "data.npz", **arrays, **labels)
    data = Npz(path=str(tmp_path / "data.npz"), inputs=("x", "other"), validation=0).arrays()
    network = Onnx(str(tmp_path / "net.onnx")).float_graph()
    assert network is not None and network.inputs == ("x", "other")
    graph = Int8().from_float(network, data)
    frames.check(graph, data)
    found = graph.evaluate(stored(graph, data, {"images": 4}).astype(np.int64))
    x, other = (arrays[f"test_{name}"] / 255 for name in ("x", "other"))
    wanted = [np.concatenate([x, other], 3).reshape(4, -1), -x.reshape(4, -1)]
    for name, real in zip(graph.outputs, wanted, strict=True):
        tensor, found = graph.tensors[name], found
        part, found = found[:, : tensor.size], found[:, tensor.size :]
        assert abs(tensor.real(part) - real).max() <= 1.01 * tensor.scale[0]
    with pytest.raises(
        ThimbleError, match=r"takes x 3x4x2, other 3x4x2, .* data.inputs=\[x,other\]"
    ):
        frames.check(graph, {**data, "inputs": np.array(["other", "x"])})


def test_what_takes_one_alone_says_what_to_try() -> None:
    with pytest.raises(
        ThimbleError, match=r"3 outputs, .* strategy=joint .* model.outputs=\[conv2\]"
    ):
        Herringbone().plan(several(0, 1), host())
