"""Networks of 4 bits that arrive: integers trained elsewhere, where what is in the file is what is
computed, and a user's PyTorch network as a chain, in any way to write it; and what is refused."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.home import ROOT
from pipeline.importers.integer import Integer
from pipeline.importers.torch_chain import chain
from pipeline.importers.torch_model import TorchModel
from pipeline.models.network import PixelPool, state_arrays
from pipeline.quantize.int4 import Int4
from pipeline.strategies.in_place import Herringbone
from tests.codegen.support import Native, agrees, uno
from tests.comparing import equal
from tests.importers.torch_modules import Of


def arrays(**changes: Any) -> dict[str, Any]:
    """Two convolutions, a maximum and a dense layer; ``None`` leaves one out."""
    rng = np.random.default_rng(7)

    def whole(low: int, high: int, *shape: int) -> np.ndarray:  # type: ignore[type-arg]
        return rng.integers(low, high + 1, shape).astype(np.int8)

    found = {
        "input": np.array([16, 12, 1]),
        "pool": np.array(2),
        "layers": np.array(["a", "b", "m", "d"]),
        "kinds": np.array(["conv", "conv", "maxpool", "dense"]),
        "a.weight": whole(-8, 7, 3, 3, 3, 1),
        "a.bias": whole(-128, 127, 3),
        "a.shift": np.array([1, 5]),
        "a.padding": np.array([1, 1, 0, 0]),
        "b.weight": whole(-8, 7, 4, 3, 3, 3),
        "b.bias": whole(-128, 127, 4),
        "b.shift": np.array([0, 6]),
        "d.weight": whole(-8, 7, 5, 3, 1, 4),
        "d.bias": whole(-128, 127, 5),
        "d.shift": np.array([2, 0]),
    }
    changed = {key.replace("__", "."): value for key, value in changes.items()}
    return {key: value for key, value in {**found, **changed}.items() if value is not None}


def imported(folder: Path, **changes: Any) -> Graph:
    np.savez(folder / "net.npz", **arrays(**changes))
    return Integer(path=str(folder / "net.npz")).graph()


def by_hand(image: Any) -> Any:
    """The format's own words, an image (h, w) at a time."""
    held = arrays()
    x = image.reshape(8, 2, 6, 2).sum((1, 3)) // 64
    x = np.pad(x[..., None], ((1, 1), (0, 0), (0, 0)))
    for name in "ab":
        weight, bias, (left, right) = (held[f"{name}.{k}"] for k in ("weight", "bias", "shift"))
        weight, rows, columns = weight.astype(int), x.shape[0] - 2, x.shape[1] - 2
        out = np.zeros((rows, columns, len(bias)), int)
        for r in range(rows):
            for c in range(columns):
                out[r, c] = (x[r : r + 3, c : c + 3] * weight).sum((1, 2, 3))
        real = ((out << left) + bias) / 2**right
        x = np.clip(np.round(real), 0, 15).astype(int)  # NumPy rounds halves to even
    x = x[: x.shape[0] // 2 * 2].reshape(x.shape[0] // 2, 2, -1, 2, 4).max((1, 3))
    weight = held["d.weight"].astype(int)
    return ((x * weight).sum((1, 2, 3)) << 2) + held["d.bias"]


def test_it_computes_what_the_file_says(tmp_path: Path) -> None:
    graph = imported(tmp_path)
    for image in np.random.default_rng(1).integers(0, 256, (20, 16, 12)):
        found = graph.evaluate(image.reshape(1, 16, 12, 1)).reshape(-1)
        assert found.tolist() == by_hand(image).tolist()
    for name, values in graph.constants.items():
        equal(values, arrays()[name], name=name)  # nothing is rounded
    assert graph.tensors[graph.input].units == (1, 0)  # pixels, as integers come out


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"layers": None}, "layers is missing; the format is in docs/integer-weights.md"),
        ({"kinds": np.array(["conv"])}, "layers has 4 names, kinds 1"),
        ({"layers": np.array(["a", "b", "a", "d"])}, "a name of its own"),
        ({"layers": np.array([1, 2, 3, 4])}, "layers holds int64, a list of words is wanted"),
        ({"kinds": np.array(["conv", "conv", "lstm", "dense"])}, "m is a lstm, which is not supp"),
        ({"pool": np.array(3)}, "pool is 3, and has to be one of"),
        ({"input": np.array([16, 12])}, r"input is \[16, 12\]; wanted: 3 of 1…65536"),
        ({"a__weight": np.full((3, 3, 3, 1), 8)}, r"a.weight holds 0…8, int4 is -8…7"),
        ({"a__bias": np.array([0, 0, 200])}, r"a.bias holds 0…200, int8 is -128…127"),
        ({"a__bias": np.zeros(2, np.int8)}, "and a bias for each output|wanted are 4 axes"),
        ({"a__weight": np.zeros((3, 3, 3), np.int8)}, "wanted are 4 axes, outputs first"),
        ({"b__weight": np.zeros((4, 3, 3, 2), np.int8)}, "b: weights for 2 input channels"),
        ({"d__weight": np.zeros((5, 4, 1, 4), np.int8)}, "d: weights for"),
        ({"a__shift": np.array([0, 16])}, r"a.shift is \[0, 16\]; wanted: 2 of 0…15"),
        ({"a__weight": np.zeros((3, 3, 3, 1))}, "a.weight holds float64, integers are wanted"),
    ],
)
def test_other_files_are_one_line(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=said) as caught:
        imported(tmp_path, **changes)
    assert "\n" not in str(caught.value)


def test_the_example_of_the_docs_is_a_network(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "integer-weights.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    code = code.replace('"digits.npz"', repr(str(tmp_path / "digits.npz")))
    exec(compile(code, "integer-weights.md", "exec"), {})
    graph = Integer(path=str(tmp_path / "digits.npz")).graph()
    assert graph.tensors[graph.output].shape == (10,) and graph.name == "digits"


def modules(*norm: nn.Module, stride: int = 2) -> nn.Module:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = m.drop(m.features(m.shrink(x)))
        return m.pool(torch.flatten(x, 1))

    features = nn.Sequential(nn.Conv2d(1, 4, 3), *(norm or [nn.ReLU()]), nn.MaxPool2d(2))
    parts = {"shrink": nn.AvgPool2d(2, stride), "features": features, "drop": nn.Dropout(0.2)}
    return Of(forward, **parts, pool=nn.Linear(36, 5))  # a name that the chain has, too


def functions() -> nn.Module:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = functional.avg_pool2d(x, 2)
        x = functional.max_pool2d(functional.relu(m.features(x)), 2)
        return m.pool(x.flatten(1))

    return Of(forward, features=nn.Conv2d(1, 4, 3), pool=nn.Linear(36, 5))


def bare(before: Callable[..., torch.Tensor] = lambda x: x) -> nn.Module:
    """No average pool: every pixel by itself."""
    return Of(
        lambda m, x: m.head(m.conv(before(x)).relu().flatten(1)),
        conv=nn.Conv2d(1, 3, 3, stride=2), head=nn.Linear(147, 5),
    )  # fmt: skip


def model(name: str, **fields: Any) -> TorchModel:
    return TorchModel(input_shape=(16, 16, 1), factory=f"{__name__}:{name}", **fields)


def data() -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    images = np.random.default_rng(0).integers(0, 256, (64, 16, 16, 1), np.uint8)
    return {"train_images": images}


@pytest.mark.parametrize("name", ["modules", "functions", "bare"])
def test_user_networks_go_to_the_uno(name: str, tmp_path: Path) -> None:
    """Quantized without a training: the C computes the integers, and these follow the network."""
    torch.manual_seed(3)
    found = model(name)
    network = found.build().eval()
    graph = Int4().graph("net", found, state_arrays(network), data())
    assert graph.tensors[graph.input].units == (1 / 255, 0)  # as ``found`` takes it: 0…1
    plan = Herringbone("slots").plan(graph, uno())
    assert agrees(Native(tmp_path, graph, plan, uno(), sanitize=False), 5)
    images = data()["train_images"]
    real = network(torch.from_numpy(images).permute(0, 3, 1, 2).float()).detach().numpy()
    integers = graph.evaluate(images.astype(np.int64)) * graph.tensors[graph.output].scale[0]
    assert np.corrcoef(integers.reshape(-1), real.reshape(-1))[0, 1] > 0.9


def test_modules_and_functions_are_the_same_chain() -> None:
    torch.manual_seed(1)
    first = chain("a", modules(), (0, 1))
    torch.manual_seed(1)
    second = chain("b", functions(), (0, 1))
    assert [type(layer) for layer in first] == [type(layer) for layer in second]
    assert isinstance(first[0], PixelPool) and first[0].size == 2
    x = torch.rand(2, 1, 16, 16) * 255
    assert torch.equal(first.eval()(x), second.eval()(x))
    assert "pool_" in dict(first.named_children())
    assert chain("c", bare(), (0, 1))[0].size == 1  # type: ignore[union-attr]


def test_a_range_from_0_is_in_the_first_weights() -> None:
    one, ten = bare(), bare()
    ten.load_state_dict(one.state_dict())
    plain, scaled = chain("a", one, (0, 1)), chain("a", ten, (0, 10))
    assert torch.equal(scaled.conv.weight, 10 * plain.conv.weight)  # type: ignore[operator, arg-type]
    with pytest.raises(ThimbleError, match=r"input_range=\[-1,1\]: 4-bit networks take"):
        chain("a", bare(), (-1, 1))


@pytest.mark.parametrize(
    ("network", "said"),
    [
        (bare(lambda x: x + x.relu()), "makes it no chain of layers: Conv2d, Linear"),
        (bare(torch.sigmoid), "sigmoid is not supported by quantize=int4: Conv2d"),
        (Of(lambda m, x: x if x.sum() > 0 else -x), "quantize=int4 cannot trace it .TraceError"),
        (
            modules(nn.BatchNorm2d(4)),
            r"features.1 is a BatchNorm2d, which quantize=int4 does not",
        ),
        (
            modules(stride=1),
            "average pool that pixels arrive in is a square with a stride like it",
        ),
    ],
)
def test_what_is_no_chain_is_one_line(network: nn.Module, said: str) -> None:
    with pytest.raises(ThimbleError, match=said) as caught:
        chain("net:Net", network, (0, 1))
    assert "\n" not in str(caught.value) and "net:Net" in str(caught.value)
