import numpy as np
import pytest
import torch

from tests.importers import onnx_models

torch.set_num_threads(1)  # the networks are tiny: threads would only wait for one another


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quantization asks for two."""
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)


@pytest.fixture(autouse=True)
def weights_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's weights do not depend on which tests ran before it."""
    monkeypatch.setattr(onnx_models, "RANDOM", np.random.default_rng(5))
