"""LSTM and GRU of ONNX and PyTorch: as they compute them, quantized, planned and step by step."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from torch import nn

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.importers.float_graph import FloatGraph
from pipeline.importers.onnx import Onnx
from pipeline.importers.torch_export import exported
from pipeline.importers.torch_model import Ranged, TorchModel
from pipeline.models.network import state_arrays
from pipeline.plan.cost import cost
from pipeline.quantize.int8 import Int8
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.support import frames, on_board
from tests.importers.support import session
from tests.importers.test_states import L4, in_sequence
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

STEPS, FEATURES, UNITS = 7, 3, 6
PASSES = ("fold_reshape", "dead_channels", "fold_tables")


def file(kind: str, way: str = "forward", steps: int = STEPS, **options: Any) -> onnx.ModelProto:
    """(1, steps, features) -> (1, steps, directions * units), the last h behind it."""
    rng, ways, gates = np.random.default_rng(0), 1 + (way[0] == "b"), 4 if kind == "LSTM" else 3
    shapes = [(gates * UNITS, FEATURES), (gates * UNITS, UNITS), (2 * gates * UNITS,)]
    held = [
        numpy_helper.from_array(rng.normal(0, 0.6, (ways, *shape)).astype("f4"), name)
        for name, shape in zip("wrb", shapes, strict=True)
    ]
    for name, rows in (("dims", steps), ("last", 1)):
        held.append(numpy_helper.from_array(np.array([1, rows, ways * UNITS]), name))
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node(
            kind, ["t", "w", "r", "b"], ["y", "h"], hidden_size=UNITS, direction=way, **options
        ),
        helper.make_node("Transpose", ["y"], ["u"], perm=[2, 0, 1, 3]),
        helper.make_node("Reshape", ["u", "dims"], ["all"]),
        helper.make_node("Transpose", ["h"], ["g"], perm=[1, 0, 2]),
        helper.make_node("Reshape", ["g", "last"], ["end"]),
        helper.make_node("Concat", ["all", "end"], ["z"], axis=1),
    ]
    ends = [helper.make_tensor_value_info("x", 1, [1, steps, FEATURES])]
    found = [helper.make_tensor_value_info("z", 1, None)]
    graph = helper.make_graph(nodes, "net", ends, found, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def close(graph: Graph, frames: np.ndarray, wanted: np.ndarray, most: float = 0.8) -> None:
    """On average within ``most`` of a step of the output's scale."""
    target = graph.tensors[graph.output]
    found = target.real(graph.evaluate(frames.astype(np.int64) - 128)).reshape(wanted.shape)
    assert abs(found - wanted).mean() < most * target.scale[0]


WAYS = [
    ("LSTM", "forward", {}),
    ("GRU", "bidirectional", {"linear_before_reset": 1}),
    ("LSTM", "bidirectional", {}),
    ("GRU", "reverse", {}),
    ("LSTM", "reverse", {}),
    ("GRU", "forward", {"linear_before_reset": 1}),
]


@pytest.mark.parametrize(("kind", "way", "options"), quick(2, WAYS, ci=6))
def test_files_compute_what_onnxruntime_does(
    kind: str, way: str, options: dict[str, int], tmp_path: Path
) -> None:
    made = file(kind, way, **options)
    onnx.save(made, tmp_path / "net.onnx")
    network = Onnx(str(tmp_path / "net.onnx"), input_range=(-2.0, 2.0)).float_graph()
    assert network is not None
    raw = np.random.default_rng(1).integers(0, 256, (60, 1, STEPS, FEATURES)).astype(np.uint8)
    run = session(tmp_path / "net.onnx")
    real = (raw.astype("f4") / 255 * 4 - 2).reshape(60, 1, STEPS, FEATURES)
    wanted = np.stack([run.run(None, {"x": each})[0][0] for each in real])
    rows = torch.from_numpy(raw.astype("f4")).reshape(60, *network.shapes[network.input])
    assert np.allclose(network.evaluate(rows).reshape(wanted.shape), wanted, atol=1e-5)
    graph = Int8(threads=1).from_float(network, {"train_images": raw})
    close(graph, raw.reshape(60, *graph.tensors[graph.input].shape), wanted)
    in_sequence_of_one(passes.applied(graph, PASSES))


def in_sequence_of_one(graph: Graph) -> None:
    given = np.random.default_rng(0).integers(-128, 128, (6, *graph.tensors[graph.input].shape))
    in_sequence(Ordinary().plan(graph, L4), graph, given)


class Stack(nn.Module):
    """Stack two layers and gains as RNNoise does. 100 thousand weights of GRU."""

    def __init__(self, kind: type[nn.RNNBase], features: int = 42, units: int = 96) -> None:
        super().__init__()
        self.features = features
        self.cells = kind(features, units, num_layers=2, batch_first=True)
        self.gains = nn.Linear(units, 22)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made, _ = self.cells(x.squeeze(2).transpose(1, 2))
        return self.gains(made).sigmoid()


def both(kind: type[nn.RNNBase], **sizes: int) -> tuple[Stack, FloatGraph, FloatGraph]:
    """A module, as a sequence and as a step."""
    torch.manual_seed(0)
    module = Stack(kind, **sizes).eval()
    own = Ranged(module, -2, 2)
    whole, step = (
        exported("net", own, torch.zeros(1, module.features, 1, n), n == 1) for n in (STEPS, 1)
    )
    return module, *(replace(each, limits=(0.0, 255.0)) for each in (whole, step))


@pytest.mark.parametrize("kind", quick(1, [nn.GRU, nn.LSTM], ci=1))
def test_modules_give_the_same_whole_and_step_by_step(kind: type[nn.RNNBase]) -> None:
    module, whole, step = both(kind, features=6, units=8)
    raw = np.random.default_rng(2).integers(0, 256, (STEPS * 20, 1, 1, 6)).astype(np.uint8)
    rows = raw.reshape(20, 1, STEPS, 6)
    real = torch.from_numpy(rows / 255 * 4 - 2).float().permute(0, 3, 1, 2)
    wanted = module(real).detach().numpy()
    found = whole.evaluate(torch.from_numpy(rows.astype("f4")))
    assert np.allclose(found.reshape(wanted.shape), wanted, atol=1e-5)
    close(Int8(threads=1).from_float(whole, {"train_images": rows}), rows, wanted)
    once = module(real.permute(1, 2, 0, 3).reshape(1, 6, 1, -1)).detach().numpy()
    graph = Int8(threads=1).from_float(step, {"train_images": raw})
    assert len(graph.states) == (2 if kind is nn.GRU else 4)
    close(graph, raw, once)
    in_sequence_of_one(passes.applied(graph, PASSES))


@needs_arm
@pytest.mark.ci
@pytest.mark.parametrize(("kind", "board"), [
    (nn.LSTM, "nucleo_l4r5zi"), (nn.GRU, "nucleo_g0b1re"), (nn.LSTM, "nucleo_f103rb"),
])  # fmt: skip
def test_cells_compute_the_same_on_cores(
    kind: type[nn.RNNBase], board: str, tmp_path: Path
) -> None:
    step = both(kind, features=6, units=8)[2]
    graph = passes.applied(Int8(images=4, threads=1).from_float(step, None), PASSES)
    on_board(tmp_path, graph, board_named(board), given=frames(graph, 5))


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_a_stack_of_a_hundred_thousand_weights_keeps_its_states_in_place(
    kind: type[nn.RNNBase],
) -> None:
    _, _, step = both(kind)
    graph = passes.applied(Int8(images=4, threads=1).from_float(step, None), PASSES)
    assert graph.weight_bytes > 95_000
    plan = Ordinary().plan(graph, L4)
    assert cost(plan, graph, L4).pmu_bytes <= graph.state_bytes + 2 * 96 + 42


class Kept(nn.Module):
    """Take what is kept, and give it behind the answer; of a cell, or of a layer of ``layers``."""

    def __init__(self, kind: type[nn.Module], layers: int = 1, lost: bool = False) -> None:
        super().__init__()
        self.alone, self.lost = kind in (nn.GRUCell, nn.LSTMCell), lost
        more = {} if self.alone else {"batch_first": True, "num_layers": layers}
        self.cells, self.out = kind(6, 8, **more), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor, *kept: torch.Tensor, **named: torch.Tensor) -> Any:
        kept = kept or tuple(named.values())
        kept = kept if self.alone else tuple(each.transpose(0, 1) for each in kept)
        made = self.cells(x, kept if len(kept) > 1 else kept[0])
        after = made if self.alone else made[1]
        after = after if isinstance(after, tuple) else (after,)
        return self.out(after[0] if self.alone else made[0]), *after[self.lost :]


def kept(kind: type[nn.Module], **options: Any) -> TorchModel:
    more = () if kind in (nn.GRUCell, nn.LSTMCell) else (options.get("layers", 1),)
    names = "hc" if kind in (nn.LSTM, nn.LSTMCell) else "h"
    return TorchModel(
        factory=f"{__name__}:Kept", kwargs={"kind": kind, **options}, input_range=(-2, 2),
        inputs=(("x", 6, *([1] * len(more))),), state=tuple((n, 8, *more) for n in names),
    )  # fmt: skip


@pytest.mark.parametrize("kind", quick(1, [nn.GRUCell, nn.LSTM, nn.LSTMCell, nn.GRU]))
def test_what_a_module_takes_and_returns_stays_between_calls(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    own = kept(kind)
    module: Any = own.build()
    raw = np.random.default_rng(3).integers(0, 256, (140, 1, 1, 6)).astype(np.uint8)
    graph = Int8(threads=1).graph("net", own, state_arrays(module), {"train_images": raw})
    shapes = [own.examples[name].shape for name in own.examples]
    held, wanted = [torch.zeros(shape) for shape in shapes[1:]], []
    for frame in torch.from_numpy(raw / 255 * 4 - 2).float():
        with torch.no_grad():
            answer, *held = module.network(frame.reshape(shapes[0]), *held)
        wanted.append(answer.reshape(-1).numpy())
    given = raw.reshape(140, *graph.tensors[graph.input].shape)
    close(graph, given, np.stack(wanted))
    in_sequence_of_one(passes.applied(graph, PASSES))


LOST = [
    (kept(nn.GRU, layers=2), "give h, and c, to one layer in one direction"),
    (kept(nn.GRUCell, lost=True), "gives 1 results: .* behind them what is kept of .*, h"),
]


@pytest.mark.parametrize(("own", "said"), LOST)
def test_what_is_not_kept_as_told(own: TorchModel, said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        own.probe()


REFUSED = [
    ({"direction": "bidirectional", "steps": 1}, True, "only whole sequences go both ways"),
    ({}, True, "a sequence of 7 steps that begins with states, or with step=true"),
    ({"clip": 3.0}, False, "peepholes, clips, other activations and coupled gates are not"),
    ({"input_forget": 1}, False, "coupled gates are not supported"),
]


@pytest.mark.parametrize(("options", "step", "said"), REFUSED)
def test_what_is_refused(options: dict[str, Any], step: bool, said: str, tmp_path: Path) -> None:
    given = dict(options)
    made = file("LSTM", given.pop("direction", "forward"), given.pop("steps", STEPS), **given)
    onnx.save(made, tmp_path / "net.onnx")
    with pytest.raises(ThimbleError, match=said):
        Onnx(str(tmp_path / "net.onnx"), step=step).float_graph()


def test_a_projection_is_refused() -> None:
    module = Stack(nn.LSTM)
    module.cells = nn.LSTM(42, 96, proj_size=8, batch_first=True)
    module.gains = nn.Linear(8, 22)
    with pytest.raises(ThimbleError, match="projections are not supported"):
        exported("net", module.eval(), torch.zeros(1, 42, 1, 3))
