import pytest
import torch

torch.set_num_threads(1)  # the networks are tiny: threads would only wait for one another


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Quantization asks for two."""
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
