"""Blocks that several families share; every one takes and gives (n, c, h, w).

Convolutions of odd kernels pad by ``kernel // 2`` on all sides: the sizes are those of TensorFlow's
"same", ceil(size / stride), which at stride 2 and even sizes pads at the end only.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from pipeline.errors import ThimbleError

Pair = tuple[int, int]
"""(vertical, horizontal)"""

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "silu": nn.SiLU,
    "hardswish": nn.Hardswish,
    "tanh": nn.Tanh,
}


def activation(name: str) -> nn.Module:
    if name not in ACTIVATIONS:
        raise ThimbleError(
            f"model: no activation {name!r}; there are {', '.join(sorted(ACTIVATIONS))}"
        )
    return ACTIVATIONS[name]()


def convolution(
    c_in: int,
    c_out: int,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    act: str | None = "relu6",
    bias: bool = False,
) -> nn.Sequential:
    """Convolution, batch normalization, activation: (n, c_in, h, w) -> (n, c_out, h', w')."""
    if kernel % 2 == 0:
        raise ThimbleError(f"model: a convolution's kernel has to be odd, not {kernel}")
    layers = nn.Sequential()
    layers.add_module(
        "conv", nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups, bias=bias)
    )
    layers.add_module("norm", nn.BatchNorm2d(c_out))
    if act is not None:
        layers.add_module("act", activation(act))
    return layers


def separable(
    c_in: int, c_out: int, kernel: int = 3, stride: int = 1, act: str = "relu6", bias: bool = False
) -> nn.Sequential:
    """Depthwise, then pointwise convolution (Howard et al. 2017, fig. 3, right)."""
    layers = nn.Sequential()
    layers.add_module("depthwise", convolution(c_in, c_in, kernel, stride, c_in, act, bias))
    layers.add_module("pointwise", convolution(c_in, c_out, 1, act=act, bias=bias))
    return layers


class SqueezeExcite(nn.Module):
    """Scale each channel by a gate computed from all channels' means (Hu et al. 2018).

    ``hard``: with ReLU and a gate of three straight lines (Howard et al. 2019, section 5.3).
    """

    def __init__(self, channels: int, squeezed: int, act: str, hard: bool = False) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.act = activation("relu" if hard else act)
        self.excite = nn.Conv2d(squeezed, channels, 1)
        self.gate = nn.Hardsigmoid() if hard else nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        gate: Tensor = self.gate(self.excite(self.act(self.squeeze(self.pool(x)))))
        return x * gate


class InvertedResidual(nn.Module):
    """Expand, depthwise, project (Sandler et al. 2018, fig. 4d); the block's input is added where
    the shapes are equal.

    ``squeezed`` channels of squeeze-excitation follow the depthwise convolution; 0 is none;
    ``hard``: by its ``hard`` gate.
    ``project`` is the kernel and the stride of the projection.
    """

    def __init__(
        self,
        c_in: int,
        c_out: int,
        kernel: int = 3,
        stride: int = 1,
        expand: float = 6,
        act: str = "relu6",
        squeezed: int = 0,
        project: Pair = (1, 1),
        hard: bool = False,
    ) -> None:
        super().__init__()
        hidden = round(c_in * expand)
        self.body = nn.Sequential()
        if expand != 1:
            self.body.add_module("expand", convolution(c_in, hidden, 1, act=act))
        self.body.add_module("depthwise", convolution(hidden, hidden, kernel, stride, hidden, act))
        if squeezed:
            self.body.add_module("excite", SqueezeExcite(hidden, squeezed, act, hard))
        self.body.add_module("project", convolution(hidden, c_out, *project, act=None))
        self.adds = c_in == c_out and stride == 1 and project[1] == 1

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.body(x)
        return x + y if self.adds else y


def classifier(c_in: int, classes: int) -> nn.Sequential:
    """Global average, then dense: (n, c_in, h, w) -> (n, classes)."""
    layers = nn.Sequential()
    layers.add_module("pool", nn.AdaptiveAvgPool2d(1))
    layers.add_module("flatten", nn.Flatten())
    layers.add_module("dense", nn.Linear(c_in, classes))
    return layers


def divisible(channels: float, by: int = 8) -> int:
    """Return the nearest multiple of ``by``, not more than a tenth below ``channels``: the rounding
    that MobileNetV2 and its successors were published with."""
    rounded = max(by, int(channels + by / 2) // by * by)
    return rounded + by if rounded < 0.9 * channels else rounded


def same_padding(size: int, kernel: int, stride: int) -> Pair:
    """(before, after) of TensorFlow's "same" padding: ceil(size / stride) outputs."""
    outputs = -(-size // stride)
    total = max(0, (outputs - 1) * stride + kernel - size)
    return total // 2, total - total // 2
