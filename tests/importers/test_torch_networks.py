"""PyTorch's networks: every operator imported exactly, and in int8 within one unit of the real
result; random networks; and those of users, with their weights."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from pipeline.datasets.synthetic import Synthetic
from pipeline.errors import ThimbleError
from pipeline.importers import torch_export
from pipeline.importers.float_passes import simplified
from pipeline.importers.torch_export import exported
from pipeline.importers.torch_model import TorchModel
from pipeline.importers.torch_operators import OPERATORS, supported
from pipeline.models.network import state_arrays
from pipeline.quantize.int8 import Int8, absorbed
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.importers import support
from tests.importers.support import real, stored
from tests.importers.torch_modules import MODULES, Of
from tests.programs import refusal, written
from tests.tiers import quick

ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.Hardswish, nn.SiLU, nn.Tanh, nn.LeakyReLU, nn.Identity)


JOINS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * torch.tanh(b),
    "concatenate": lambda a, b: torch.cat([a, b], 1),
    "gate": lambda a, b: a * torch.sigmoid(b.mean((2, 3), keepdim=True)),
}


def branches(first: nn.Module, second: nn.Module, join: str) -> nn.Module:
    return Of(lambda m, x: JOINS[join](m.first(x), m.second(x)), first=first, second=second)


@st.composite
def networks(draw: st.DrawFn) -> tuple[nn.Module, tuple[int, int, int]]:
    """An image network of a few blocks and a classifier."""
    torch.manual_seed(draw(st.integers(0, 2**31)))
    channels, size = draw(st.integers(1, 4)), draw(st.integers(5, 9))
    shape = (channels, size, size + draw(st.integers(0, 2)))
    layers: list[nn.Module] = []

    def block(c_in: int, c_out: int) -> nn.Module:
        kernel = draw(st.sampled_from((1, 3)))
        depthwise = c_out % c_in == 0 and draw(st.booleans())
        made: list[nn.Module] = [
            nn.Conv2d(c_in, c_out, kernel, padding=kernel // 2,
                      groups=c_in if depthwise else 1, bias=draw(st.booleans()))
        ]  # fmt: skip
        if draw(st.booleans()):
            made.append(nn.BatchNorm2d(c_out))
        made.append(draw(st.sampled_from(ACTIVATIONS))())
        return nn.Sequential(*made)

    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(("plain", "branches", "pool")))
        if kind == "pool" and size >= 4:
            layers.append(draw(st.sampled_from((nn.MaxPool2d(2), nn.AvgPool2d(3, 2, 1)))))
            size = size // 2
            continue
        c_out = draw(st.integers(1, 8))
        if kind == "branches":
            join = draw(st.sampled_from([*JOINS]))
            layers.append(branches(block(channels, c_out), block(channels, c_out), join))
            c_out *= 2 if join == "concatenate" else 1
        else:
            layers.append(block(channels, c_out))
        channels = c_out
    if draw(st.booleans()):
        layers.append(nn.AdaptiveAvgPool2d(1))
    body = nn.Sequential(*layers, nn.Flatten())
    features = body.eval()(torch.zeros(1, *shape)).shape[1]
    return nn.Sequential(body, nn.Linear(features, draw(st.integers(2, 6)))), shape


def check_network(found: tuple[nn.Module, tuple[int, int, int]]) -> None:
    """Imported exactly; quantized, each operator within one unit of its own integer inputs' real
    result, and the whole near the real network."""
    module, shape = found
    support.shaken(module)
    generator = torch.Generator().manual_seed(0)
    raw = torch.randint(0, 256, (24, *shape), generator=generator).float()
    module = Of(lambda m, x: m.net(x / 64 - 2), net=module).eval()
    network = support.check_float(module, raw[:4])
    data = {"train_images": raw.permute(0, 2, 3, 1).numpy().astype(np.uint8)}
    quantizer = Int8(observer="minmax")
    graph = quantizer.from_float(network, data)
    stored = raw.permute(0, 2, 3, 1).long().numpy() - 128
    inner, _ = absorbed(network)
    support.check_steps(inner, graph, stored)
    with torch.no_grad():
        expected = torch.cat([module(frame[None]) for frame in raw]).numpy()
    error = real(graph, graph.output, graph.evaluate(stored)) - expected
    power = np.square(expected).mean()
    unit = graph.tensors[graph.output].scale[0]
    assert np.square(error).mean() <= 0.05 * power + (3 * unit) ** 2


FEW = settings(
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@pytest.mark.parametrize("count", quick(0, [10, 200], ci=1))
def test_random_networks(count: int) -> None:
    settings(FEW, max_examples=count)(given(networks())(check_network))()


IMAGE = torch.zeros(1, 3, 8, 8)


def test_a_slice_of_a_slice_is_one_operator() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x[:, 1:, ::2, 1:-1][:, :, 1:, ::3].abs()

    x = torch.randn(2, 3, 8, 8)
    network = simplified(exported("net", Of(forward), IMAGE))
    assert [type(node).__name__ for node in network.nodes] == ["Rearranged", "Function"]
    expected = forward(nn.Identity(), x).permute(0, 2, 3, 1)
    assert torch.equal(network.evaluate(x.permute(0, 2, 3, 1)), expected)


NETWORK = """
import torch
from own_layers import Layer

class Net(torch.nn.Module):
    def __init__(self, width=4, classes=3):
        super().__init__()
        self.a = Layer(2, width)
        self.b = torch.nn.Linear(width, classes)

    def forward(self, x):
        return self.b(self.a(x).mean((2, 3)))

class Sums(Net):
    def forward(self, x):
        return super().forward(torch.cumsum(x, 2))

def signals():
    return torch.nn.Sequential(
        torch.nn.Conv1d(3, 4, 3, padding=1), torch.nn.BatchNorm1d(4), torch.nn.ReLU(),
        torch.nn.MaxPool1d(2), torch.nn.Flatten(), torch.nn.Linear(20, 3))

def unsupported():
    return torch.nn.Sequential(torch.nn.ReLU(), torch.nn.FractionalMaxPool2d(2, 3))

def broken():
    raise RuntimeError("no weights\\nhere")

number = lambda: 3
"""
LAYERS = """
import torch

class Layer(torch.nn.Conv2d):
    def __init__(self, c_in, c_out):
        super().__init__(c_in, c_out, 3, padding=1)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which the command was typed, with the user's modules."""
    written(tmp_path, {"own_net.py": NETWORK, "own_layers.py": LAYERS})
    monkeypatch.setenv("THIMBLE_TYPED", str(tmp_path))
    before = list(sys.path)
    yield tmp_path
    sys.path[:] = before
    for name in ("own_net", "own_layers"):
        sys.modules.pop(name, None)


def model(**fields: object) -> TorchModel:
    values = {"factory": "own_net:Net", "input_shape": (6, 5, 2), "classes": 3, **fields}
    return TorchModel(**values)  # type: ignore[arg-type]


def test_the_users_network_with_its_weights(folder: Path) -> None:
    made = model(kwargs={"width": 5}, input_range=(-1.0, 1.0)).build()
    weights = {name.removeprefix("network."): value for name, value in made.state_dict().items()}
    for path, save in ((folder / "w.pt", torch.save), (folder / "w.npz", None)):
        if save:
            save(weights, path)
        else:
            np.savez(path, **{name: value.numpy() for name, value in weights.items()})
        again_model = model(kwargs={"width": 5}, input_range=(-1.0, 1.0), state_dict=str(path))
        again = again_model.build()
        arrays = state_arrays(made)
        assert all((value == arrays[name]).all() for name, value in state_arrays(again).items())
        raw = torch.full((1, 2, 6, 5), 255.0)
        with torch.no_grad():
            assert torch.allclose(made(raw), made.network(torch.ones(1, 2, 6, 5)), atol=1e-6)
        for key, value in RandomWeights().train(again_model, {}, Run(1, 1)).weights.items():
            assert (value == arrays[key]).all()  # random is only what was not given
    graph = Int8(images=8).graph("own", model(kwargs={"width": 5}), state_arrays(made))
    assert graph.tensors[graph.output].shape == (3,)
    assert graph.tensors[graph.input].shape == (6, 5, 2)


@pytest.mark.ci
def test_signals_as_they_are(folder: Path) -> None:
    """A network of (n, c, l), at batch 1 and more."""
    own = model(factory="own_net:signals", input_shape=(1, 10, 3))
    own.probe()
    network, raw = own.build(), torch.randint(0, 256, (20, 3, 1, 10)).float()
    with torch.no_grad():
        expected = network(raw).numpy()
        assert np.allclose(expected, network.network(raw.squeeze(2) / 255), atol=1e-5)
    images = raw.permute(0, 2, 3, 1).numpy().astype(np.uint8)
    graph = Int8().graph("own", own, state_arrays(network), {"train_images": images})
    found = real(graph, graph.output, graph.evaluate(images.astype(np.int64) - 128))
    assert np.abs(found - expected).max() < 0.1 * expected.std()
    with pytest.raises(ThimbleError, match=r"input_shape=\[2,10,3\], height, width and channels: "):
        model(factory="own_net:signals", input_shape=(2, 10, 3)).probe()


def test_weights_of_other_kinds(folder: Path) -> None:
    """bfloat16 and sparse tensors are numbers, too; what has none is one line."""
    own = model()
    plain = {name.removeprefix("network."): value.bfloat16().float()
             for name, value in own.build().state_dict().items()}  # fmt: skip
    made = {name: value.to_sparse() if value.ndim == 2 else value.bfloat16()
            for name, value in plain.items()}  # fmt: skip
    path = str(folder / "w.pt")
    torch.save(made, path)
    found = model(state_dict=path).build().state_dict()
    assert all(torch.equal(found[f"network.{name}"], value) for name, value in plain.items())
    for bad in (plain["b.bias"].to("meta"), plain["b.bias"].to(torch.complex64)):
        torch.save(made | {"b.bias": bad}, path)
        with pytest.raises(ThimbleError, match=r"b.bias in .*w.pt is torch\..*: save float32"):
            model(state_dict=path).build()


def test_places_are_the_users(folder: Path) -> None:
    """Not the module that is put around the network here, and not its file."""
    for factory, said in (("Sums", "own_net.py:16"), ("unsupported", "1 (nn.FractionalMaxPool2d)")):
        told = refusal(model(factory=f"own_net:{factory}").probe)
        assert told.startswith(f"{said}: the operator ")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"factory": "own_net"}, "give package.module:Net"),
        ({"factory": "nowhere:Net"}, "no module nowhere in"),
        ({"factory": "own_net:Other"}, "own_net has no 'Other'"),
        ({"factory": "own_net:broken"}, "RuntimeError: no weights"),
        ({"factory": "own_net:number"}, "gives a int, not an nn.Module"),
        ({"kwargs": {"depth": 3}}, "unexpected keyword argument 'depth'"),
        ({"state_dict": "none.pt"}, "none.pt does not exist"),
        ({"state_dict": "own_net.py"}, "save model.state_dict(), not the model"),
        ({"state_dict": "whole.pt"}, "not the model"),
        ({"state_dict": "w.pt"}, "weights"),
        ({"input_range": (1.0, 0.0)}, "give [low,high]"),
    ],
    ids=str,
)
def test_mistakes_are_one_line(folder: Path, fields: dict[str, object], said: str) -> None:
    torch.save({"a.weight": torch.zeros(1)}, folder / "w.pt")  # of another network
    torch.save(model().build(), folder / "whole.pt")  # a pickled module is code
    if fields.get("state_dict", "none.pt") != "none.pt":
        fields = {"state_dict": f"{folder}/{fields['state_dict']}"}
    told = refusal(lambda: model(**fields).build())
    assert said in told and "\n" not in told


def test_it_says_itself_how_many_classes_it_has(folder: Path) -> None:
    data = Synthetic(shape=(6, 5, 2), classes=3, train=20, validation=5, test=5).arrays()
    model(classes=1).check(data)
    data["test_labels"][2] = 3
    with pytest.raises(ThimbleError, match="label 3, the network 3 outputs: give it 4"):
        model().check(data)
    other = Synthetic(shape=(6, 5, 3), train=20, validation=5, test=5).arrays()
    with pytest.raises(ThimbleError, match="images of 6x5x3, the network takes 6x5x2"):
        model().check(other)
    wrong = model(input_shape=(6, 5, 3))
    with pytest.raises(ThimbleError, match=r"own_net:Net with model.input_shape=\[6,5,3\]"):
        wrong.check(other)


def test_what_cannot_be_quantized_is_said_before_training(folder: Path) -> None:
    state = torch.get_rng_state()
    model().probe()
    assert torch.equal(torch.get_rng_state(), state)  # training begins as without it
    with pytest.raises(ThimbleError, match=r"=\[2,6,5\], height, width and channels: Runt"):
        model(input_shape=(2, 6, 5)).probe()
    with pytest.raises(ThimbleError, match="cumsum is not supported"):
        model(factory="own_net:Sums").probe()


DISCONTINUOUS = ("floor", "round")
"""A value on the edge may fall on either side."""

CALLED: set[str] = set()
"""Operators that modules of ``TRIED`` have."""
TRIED: set[str] = set()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            CALLED.add(name)
            return super().__getitem__(name)

    monkeypatch.setattr(torch_export, "OPERATORS", Counted(OPERATORS))


@pytest.mark.parametrize("name", quick(12, MODULES))
def test_import_is_exact_and_int8_within_one_unit(name: str, counted: None) -> None:
    """Each operator's integers against the real result of its own integer inputs; and, few
    operators making few roundings, the whole against the real network."""
    TRIED.add(name)
    module, shape = MODULES[name]
    x = support.example(shape)
    network = support.check_float(support.shaken(module), x)
    graph, integers = support.check_integers(network, x)
    if name not in DISCONTINUOUS:
        real = network.evaluate(support.ours(x, network).double()).numpy()
        expected = stored(graph, graph.output, real)
        assert np.abs(graph.evaluate(integers) - expected).mean() <= 1.5


@pytest.mark.ci
def test_every_supported_operator_has_a_module(counted: None) -> None:
    """Those that other processes try are exported here. Cells, which keep states, are tried in
    test_recurrent."""
    for name in MODULES.keys() - TRIED:
        module, shape = MODULES[name]
        torch_export.exported("net", support.shaken(module), support.example(shape, count=1))
    tried = {name.split(".")[1] for name in CALLED if name.startswith("aten.")}
    missing = [n for n in supported() if n not in tried and not n.endswith("_cell")]
    assert not missing
