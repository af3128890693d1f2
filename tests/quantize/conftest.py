import pytest
import torch
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.datasets.synthetic import Synthetic
from tests.quantize.nets import Own, trained

torch.set_num_threads(1)  # the networks are tiny: threads would only wait for one another


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quantization asks for two."""
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)


@pytest.fixture(scope="session")
def data() -> Arrays:
    return Synthetic(train=1500, validation=100, test=1000).arrays()


@pytest.fixture(scope="session")
def residual(data: Arrays) -> nn.Module:
    return trained(Own(), data, 4, 100)
