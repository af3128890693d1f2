import pytest
from torch import nn

from pipeline.artifacts import Arrays
from pipeline.datasets.synthetic import Synthetic
from tests.importers.conftest import one_thread
from tests.quantize.nets import Own, trained

__all__ = ["one_thread"]


@pytest.fixture(scope="session")
def data() -> Arrays:
    return Synthetic(train=1500, validation=100, test=1000).arrays()


@pytest.fixture(scope="session")
def residual(data: Arrays) -> nn.Module:
    return trained(Own(), data, 4, 100)
