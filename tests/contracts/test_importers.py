"""Contract of every option of conf/model that imports a user's network: each is tested with a small
network in a file, and with one that has an operator that nothing covers. ``SAMPLES`` lists them."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from pipeline.config import own_target
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.home import ROOT
from pipeline.importers.base import Imported
from pipeline.importers.integer import Integer
from pipeline.importers.onnx import Onnx
from pipeline.importers.tflite import TFLite
from pipeline.importers.torch_model import TorchModel
from pipeline.models.network import state_arrays
from pipeline.plan.fit import roomy
from pipeline.quantize.int8 import Int8
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import frames, host
from tests.importers.onnx_models import one, small_network
from tests.importers.tflite_networks import network
from tests.importers.tflite_writer import Writer
from tests.strategies.proving import exact


@dataclass(frozen=True)
class Sample:
    """Samples for one importer.

    Attributes:
        imported: the graph from the user's file.
        small: such a file, of a few operators.
        unsupported: imports a network with ``operator``, which no rule covers, in a folder.
    """

    imported: Callable[[Path], Graph]
    small: bytes
    unsupported: Callable[[Path], Graph]
    operator: str


def integer(model: Imported) -> Graph:
    """As stage quantize does it."""
    network = model.float_graph()
    return model.graph() if network is None else Int8(images=2).from_float(network)


def cumsum() -> bytes:
    net = Writer()
    x, y = net.tensor((1, 4), 0.1, 3), net.tensor((1, 4), 0.1, 3)
    axis = net.constant(np.array(1, np.int32))
    net.operator("CUMSUM", [x, axis], [y])
    return net.content([x], [y])


class Small(nn.Module):
    def __init__(self, cumulative: bool = False) -> None:
        super().__init__()
        self.conv, self.dense = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)
        self.cumulative = cumulative

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.conv(x)).mean((2, 3))
        return self.dense(x.cumsum(1) if self.cumulative else x)


def state() -> bytes:
    """A file with random weights, always the same."""
    file = io.BytesIO()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        torch.save(Small().state_dict(), file)
    return file.getvalue()


def of_torch(path: Path, cumulative: bool = False) -> Graph:
    """The file holds the weights; the network is code."""
    model = TorchModel(
        input_shape=(6, 6, 3), factory=f"{__name__}:Small", kwargs={"cumulative": cumulative},
        state_dict=str(path),
    )  # fmt: skip
    return Int8(images=2).graph("small", model, state_arrays(model.build()))


def written(folder: Path, content: bytes) -> Path:
    path = folder / "network.pt"
    path.write_bytes(content)
    return path


def sample(kind: type[Imported], small: bytes, other: bytes, operator: str) -> Sample:
    def imported(path: Path) -> Graph:
        return integer(kind(path=str(path)))

    return Sample(imported, small, lambda folder: imported(written(folder, other)), operator)


def integers(kind: str = "dense") -> bytes:
    file, rng = io.BytesIO(), np.random.default_rng(2)
    weights = rng.integers(-8, 8, (3, 2, 3, 1)).astype(np.int8)
    own = {"d.weight": weights, "d.bias": np.arange(3, dtype=np.int8), "d.shift": np.array([0, 0])}
    shape = {"input": np.array([4, 6, 1]), "pool": np.array(2)}
    np.savez(file, layers=np.array(["d"]), kinds=np.array([kind]), **shape, **own)
    return file.getvalue()


SAMPLES: dict[type[Any], Sample] = {
    Integer: sample(Integer, integers(), integers("cumsum"), "cumsum"),
    Onnx: sample(
        Onnx, small_network().SerializeToString(),
        one("CumSum", (1, 4), np.array(1)).SerializeToString(), "CumSum",
    ),
    TFLite: sample(TFLite, network(np.random.default_rng(0)), cumsum(), "CUMSUM"),
    TorchModel: Sample(of_torch, state(), lambda p: of_torch(written(p, state()), True), "cumsum"),
}  # fmt: skip

DAMAGED = 60
LONGEST = 1000
"""Characters of a refusal."""


def listed() -> list[str]:
    """The ``_target_`` of each importer among the models."""
    found = []
    for path in sorted((ROOT / "conf" / "model").glob("*.yaml")):
        target = own_target(yaml.safe_load(path.read_text()))
        if target.startswith("pipeline.importers."):
            found.append(target)
    return found


@pytest.fixture(params=listed(), ids=lambda target: target.rpartition(".")[2])
def sample(request: pytest.FixtureRequest) -> Sample:
    module, _, name = request.param.rpartition(".")
    kind = getattr(import_module(module), name)
    assert kind in SAMPLES, f"give a sample of {name} in tests/contracts/test_importers.py"
    return SAMPLES[kind]


def test_there_are_importers() -> None:
    assert len(listed()) == len(set(listed())) == len(SAMPLES)


def test_a_small_network_is_imported_planned_and_run(sample: Sample, tmp_path: Path) -> None:
    path = written(tmp_path, sample.small)
    graph = sample.imported(path)
    assert graph.hash == sample.imported(path).hash
    given = frames(graph, 4)
    outputs = graph.evaluate(given)
    assert outputs.shape == (4, *graph.tensors[graph.output].shape)
    assert len(np.unique(outputs.reshape(4, -1), axis=0)) > 1, "it depends on its input"
    exact(roomy(Ordinary().plan(graph, host())), graph)


def test_an_operator_that_is_not_supported_is_named_in_one_line(
    sample: Sample, tmp_path: Path
) -> None:
    with pytest.raises(ThimbleError, match=f"(?i){sample.operator}.*not supported"):
        sample.unsupported(tmp_path)


def test_a_damaged_file_is_one_line_or_a_network(sample: Sample, tmp_path: Path) -> None:
    rng, refused = np.random.default_rng(0), 0
    for number in range(DAMAGED):
        content = bytearray(sample.small)
        if number % 2:
            del content[int(rng.integers(len(content))) :]
        else:
            for _ in range(8):
                content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        try:
            with np.errstate(all="ignore"):
                sample.imported(written(tmp_path, bytes(content)))
        except ThimbleError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < LONGEST
    assert refused > DAMAGED // 3


def test_a_file_that_is_not_there_is_one_line(sample: Sample, tmp_path: Path) -> None:
    with pytest.raises(ThimbleError, match=r"no such file|does not exist"):
        sample.imported(tmp_path / "absent.pt")
