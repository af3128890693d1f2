"""Modules that PyTorch's own tools quantized, after training or with it: integers are kept, outputs
are the module's."""

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pipeline.importers.torch_model import TorchModel
from pipeline.models.network import state_arrays
from pipeline.quantize.int8 import Int8
from tests.tiers import quick

pytestmark = pytest.mark.skipif(not find_spec("torchao"), reason="torchao is not installed")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.deep = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.ReLU6())
        self.point = nn.Conv2d(8, 8, 1, bias=False)
        means = nn.AvgPool2d(3, 2, 1), nn.AvgPool2d(3, 1, 1, count_include_pad=False)
        self.pool = nn.Sequential(nn.MaxPool2d(2), *means, nn.ConvTranspose2d(16, 4, 2), nn.ReLU())
        self.last = nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        x = torch.cat([x + self.point(self.deep(x)), x], 1)
        return self.last(self.pool(x).mean((2, 3)))


def quantizers() -> dict[str, Callable[[], Any]]:
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

    def of_xnnpack(**how: bool) -> Any:
        config = xnnpack.get_symmetric_quantization_config(**how)
        return xnnpack.XNNPACKQuantizer().set_global(config)

    return {
        "a scale each channel": lambda: of_xnnpack(is_per_channel=True),
        "one scale": lambda: of_xnnpack(is_per_channel=False),
        "trained": lambda: of_xnnpack(is_per_channel=True, is_qat=True),
        "uint8": lambda: x86.X86InductorQuantizer().set_global(
            x86.get_default_x86_inductor_quantization_config()
        ),
    }


KINDS = ["a scale each channel", "one scale", "trained", "uint8"]


@cache
def converted(kind: str) -> nn.Module:
    """What a user's factory returns."""
    from torchao.quantization.pt2e import quantize_pt2e as tools

    torch.manual_seed(0)
    network, qat = Net(), kind == "trained"
    network(torch.randn(16, 3, 8, 8))  # running statistics
    example = (torch.randn(1, 3, 8, 8),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = torch.export.export(network if qat else network.eval(), example).module()
        prepare = tools.prepare_qat_pt2e if qat else tools.prepare_pt2e
        prepared = prepare(plain, quantizers()[kind]())
        for _ in range(8):
            prepared(torch.randn(1, 3, 8, 8))
        made: nn.Module = tools.convert_pt2e(prepared)
    return made


@pytest.mark.parametrize("kind", quick(0, KINDS, ci=2))
def test_a_quantized_module_keeps_its_integers(kind: str) -> None:
    model = TorchModel(
        input_shape=(8, 8, 3), classes=5, factory=f"{__name__}:converted",
        kwargs={"kind": kind}, input_range=(-1.0, 1.0),
    )  # fmt: skip
    assert model.trained
    module = model.build()
    graph = Int8().graph("net", model, state_arrays(module))
    raw = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3))
    with torch.no_grad():
        frames = torch.tensor(raw, dtype=torch.float32).permute(0, 3, 1, 2)
        expected = torch.cat([module(frame[None]) for frame in frames]).numpy()
    result = graph.tensors[graph.output]
    found = result.real(graph.evaluate(raw - 128)).reshape(expected.shape)
    off = np.rint((found - expected) / result.scale[0])
    most = 2 if kind == "uint8" else 1  # it leaves the operand of a sum, and the output, float
    assert np.abs(off).max() <= most and (off != 0).mean() < 0.3
    held = [value.ravel() for value in graph.constants.values()]
    frozen = [v for name, v in state_arrays(module).items() if "_frozen_param" in name]
    assert len(frozen) == (4 if kind == "uint8" else 5)
    for each in frozen:
        if each.shape[:2] == (16, 4) and kind != "one scale":
            continue  # scales of its inputs' channels
        wanted = np.sort(each.ravel())
        assert any(len(one) == len(wanted) and (np.sort(one) == wanted).all() for one in held)
