"""One small PyTorch module for each operator and option that can be imported."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

Shape = tuple[int, ...]


class Of(nn.Module):
    """A function as a module, after optional layers."""

    def __init__(self, function: Callable[..., torch.Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self, x)


class WithConstant(nn.Module):
    """``function(x, constant)`` with a buffer."""

    def __init__(self, function: Callable[..., torch.Tensor], *shape: int) -> None:
        super().__init__()
        self.function = function
        values = torch.rand(*shape, generator=torch.Generator().manual_seed(9)) + 0.5
        self.register_buffer("constant", values)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, self.constant)


class SqueezeExcite(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(6, 3, 1), nn.Conv2d(3, 6, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = self.up(torch.relu(self.down(x.mean((2, 3), keepdim=True))))
        return x * torch.sigmoid(gate)


class Flattened(nn.Module):
    """Channels first in the source: the linear layer's weights have to follow."""

    def __init__(self, flatten: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.flatten, self.dense = flatten, nn.Linear(6 * 5 * 4, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(self.flatten(x))


IMAGE: Shape = (6, 9, 8)

MODULES: dict[str, tuple[Callable[[], nn.Module], Shape]] = {
    "conv": (lambda: nn.Conv2d(6, 5, 3), IMAGE),
    "conv same": (lambda: nn.Conv2d(6, 5, 3, padding="same", bias=False), IMAGE),
    "conv same even": (lambda: nn.Conv2d(6, 5, (4, 2), padding="same"), IMAGE),
    "conv strided": (lambda: nn.Conv2d(6, 5, (3, 2), stride=(2, 3), padding=(1, 0)), IMAGE),
    "conv dilated": (lambda: nn.Conv2d(6, 5, 3, dilation=(2, 1), padding=2), IMAGE),
    "conv grouped": (lambda: nn.Conv2d(6, 8, 3, groups=2, padding=1), IMAGE),
    "depthwise": (lambda: nn.Conv2d(6, 6, 3, groups=6, padding=1), IMAGE),
    "depthwise multiplier": (lambda: nn.Conv2d(6, 12, 3, groups=6, stride=2), IMAGE),
    "pointwise": (lambda: nn.Conv2d(6, 16, 1), IMAGE),
    "conv, norm, relu6": (
        lambda: nn.Sequential(nn.Conv2d(6, 5, 3), nn.BatchNorm2d(5), nn.ReLU6()), IMAGE),
    "norm alone": (lambda: nn.Sequential(nn.BatchNorm2d(6), nn.ReLU()), IMAGE),
    "norm without factors": (
        lambda: nn.Sequential(nn.BatchNorm2d(6, affine=False), nn.Conv2d(6, 4, 3)), IMAGE),
    "norm ahead of padding": (
        lambda: nn.Sequential(nn.BatchNorm2d(6), nn.Conv2d(6, 4, 3, padding=1)), IMAGE),
    "norm of features": (
        lambda: nn.Sequential(nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3)), (12,)),
    "norm after flatten": (
        lambda: nn.Sequential(nn.Flatten(), nn.BatchNorm1d(120), nn.Linear(120, 4)), (6, 5, 4)),
    "linear": (lambda: nn.Linear(12, 5), (12,)),
    "linear without bias": (lambda: nn.Linear(12, 5, bias=False), (12,)),
    "linear, norm, relu": (
        lambda: nn.Sequential(nn.Linear(12, 5), nn.BatchNorm1d(5), nn.ReLU()), (12,)),
    "linear over positions": (lambda: nn.Linear(10, 5), (7, 10)),
    "matmul": (lambda: WithConstant(lambda x, c: x @ c, 12, 5), (12,)),
    "mm, t": (lambda: WithConstant(lambda x, c: torch.mm(x.abs().t().t(), c), 12, 5), (12,)),
    "convolution": (
        lambda: WithConstant(
            lambda x, c: torch.convolution(
                x, c, None, [1, 2], [1, 0], [1, 1], False, [0, 0], 2).clone(),
            4, 3, 3, 3),
        IMAGE),
    "addmm": (
        lambda: WithConstant(lambda x, c: torch.addmm(c[:, 0], x, c.T), 5, 12), (12,)),
    "conv 1-D": (lambda: nn.Conv1d(10, 6, 3, padding=1, stride=2), (10, 1)),
    "flatten": (lambda: Flattened(lambda x: x.flatten(1)), (6, 5, 4)),
    "view": (lambda: Flattened(lambda x: x.view(1, -1)), (6, 5, 4)),
    "reshape": (lambda: Flattened(lambda x: x.reshape(x.size(0), -1)), (6, 5, 4)),
    "flatten of channels last": (
        lambda: Of(
            lambda m, x: m.dense(x.permute(0, 2, 3, 1).flatten(1)), dense=nn.Linear(120, 3)),
        (6, 5, 4)),
    "max pool": (lambda: nn.MaxPool2d(2), IMAGE),
    "max pool padded": (lambda: nn.MaxPool2d(3, 2, 1), IMAGE),
    "max pool ceiled": (lambda: nn.MaxPool2d((2, 3), ceil_mode=True), IMAGE),
    "max pool with indices": (
        lambda: Of(lambda m, x: F.max_pool2d(x, 2, return_indices=True)[0]), IMAGE),
    "global max pool": (lambda: nn.AdaptiveMaxPool2d(1), IMAGE),
    "average pool": (lambda: nn.AvgPool2d(2), IMAGE),
    "average pool padded": (lambda: nn.AvgPool2d(3, 2, 1), IMAGE),
    "average pool, padding left out": (
        lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), IMAGE),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d((3, 2)), IMAGE),
    "global average pool": (
        lambda: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)), IMAGE),
    "mean": (lambda: Of(lambda m, x: x.mean((-1, -2))), IMAGE),
    "mean of rows": (lambda: Of(lambda m, x: x.mean(2, keepdim=True)), IMAGE),
    "greatest": (lambda: Of(lambda m, x: x.amax((2, 3))), IMAGE),
    "mean kept": (lambda: Of(lambda m, x: x.mean([2, 3], keepdim=True)), IMAGE),
    "add": (
        lambda: Of(lambda m, x: m.a(x) + m.b(x), a=nn.Conv2d(6, 4, 1), b=nn.Conv2d(6, 4, 1)),
        IMAGE),
    "add with alpha": (
        lambda: Of(lambda m, x: torch.add(x, m.a(x), alpha=0.5), a=nn.Conv2d(6, 6, 1)), IMAGE),
    "residual": (
        lambda: Of(lambda m, x: F.relu(x + m.a(x)), a=nn.Conv2d(6, 6, 3, padding=1)), IMAGE),
    "subtract": (
        lambda: Of(lambda m, x: m.a(x) - m.b(x), a=nn.Conv2d(6, 4, 1), b=nn.Conv2d(6, 4, 1)),
        IMAGE),
    "multiply": (
        lambda: Of(lambda m, x: m.a(x) * m.b(x), a=nn.Conv2d(6, 4, 1), b=nn.Conv2d(6, 4, 1)),
        IMAGE),
    "twice": (lambda: Of(lambda m, x: x + x), IMAGE),
    "square": (lambda: Of(lambda m, x: x * x), IMAGE),
    "squeeze and excite": (SqueezeExcite, IMAGE),
    "add number": (lambda: Of(lambda m, x: x + 1.5), IMAGE),
    "number minus": (lambda: Of(lambda m, x: 1 - x), IMAGE),
    "minus number": (lambda: Of(lambda m, x: x - 0.3), IMAGE),
    "times number": (lambda: Of(lambda m, x: 2 * x), IMAGE),
    "by number": (lambda: Of(lambda m, x: x / 3), IMAGE),
    "number by": (lambda: Of(lambda m, x: 1 / (x.abs() + 1)), IMAGE),
    "add channels": (lambda: WithConstant(lambda x, c: x + c, 6, 1, 1), IMAGE),
    "channels minus": (lambda: WithConstant(lambda x, c: c - x, 1, 6, 1, 1), IMAGE),
    "times channels": (lambda: WithConstant(lambda x, c: x * c, 6, 1, 1), IMAGE),
    "by channels": (lambda: WithConstant(lambda x, c: x / c, 6, 1, 1), IMAGE),
    "add image": (lambda: WithConstant(lambda x, c: x + c, 1, 6, 9, 8), IMAGE),
    "times image": (lambda: WithConstant(lambda x, c: x * c, 1, 9, 8), IMAGE),
    "scaled convolution": (
        lambda: nn.Sequential(nn.Conv2d(6, 5, 3), WithConstant(lambda x, c: x * c, 5, 1, 1)),
        IMAGE),
    "concatenate": (
        lambda: Of(
            lambda m, x: torch.cat([m.a(x), x, torch.sigmoid(x)], 1), a=nn.Conv2d(6, 4, 1)),
        IMAGE),
    "slice of channels": (lambda: Of(lambda m, x: x[:, 1:4] + x[:, -3:]), IMAGE),
    "strided slice": (
        lambda: Of(lambda m, x: m.a(x[:, :, ::2, 1:-1]), a=nn.Conv2d(6, 4, 3)), IMAGE),
    "whole slice": (lambda: Of(lambda m, x: x[:, :, :].abs()), IMAGE),
    "select": (lambda: Of(lambda m, x: m.a(x[:, :, 2, -1]), a=nn.Linear(6, 3)), IMAGE),
    "chunks": (
        lambda: Of(lambda m, x: torch.cat([c * (n + 1) for n, c in enumerate(x.chunk(2, 1))], 1)),
        IMAGE,
    ),
    "chunks of rows": (lambda: Of(lambda m, x: x.chunk(4, 3)[3] + x.chunk(4, 3)[0]), IMAGE),
    "split": (lambda: Of(lambda m, x: x.split(4, 1)[1].abs()), IMAGE),
    "split by sizes": (lambda: Of(lambda m, x: x.split((1, 2, 3), 1)[2] * 2), IMAGE),
    "nearest neighbours": (
        lambda: nn.Sequential(nn.Conv2d(6, 4, 3, 2), nn.Upsample(scale_factor=(2, 3))),
        IMAGE,
    ),
    "nearest, added": (
        lambda: Of(lambda m, x: x + F.interpolate(m.a(x), size=x.shape[2:]),
                   a=nn.AdaptiveAvgPool2d(1)),
        IMAGE,
    ),
    "channel shuffle": (
        lambda: nn.Sequential(nn.Conv2d(6, 6, 1), nn.ChannelShuffle(3), nn.Conv2d(6, 4, 3)),
        IMAGE,
    ),
    "rows and columns swapped": (lambda: Of(lambda m, x: m.a(x.abs().permute(0, 1, 3, 2)),
                                           a=nn.Conv2d(6, 4, 3)), IMAGE),
    "channels apart": (lambda: nn.Sequential(nn.ReLU(), nn.Flatten(2), nn.Linear(72, 5)), IMAGE),
    "concatenate rows": (lambda: Of(lambda m, x: torch.cat([x, -x], 2)), IMAGE),
    "concatenate twice": (lambda: Of(lambda m, x: torch.cat([x, x], 1)), IMAGE),
    "pad": (lambda: nn.Sequential(nn.ZeroPad2d((1, 2, 0, 3)), nn.Conv2d(6, 3, 3)), IMAGE),
    "pad by function": (lambda: Of(lambda m, x: F.pad(x, (0, 1, 2, 0, 1, 0))), IMAGE),
    "pad, n dimensions": (
        lambda: Of(lambda m, x: torch.constant_pad_nd(x.abs(), (1, 1, 0, 2))), IMAGE),
    "permutes that cancel": (
        lambda: Of(
            lambda m, x: m.a((x.permute(0, 2, 3, 1) * 2).permute(0, 3, 1, 2)),
            a=nn.Conv2d(6, 4, 3)),
        IMAGE),
    "transpose": (
        lambda: Of(lambda m, x: x.abs().transpose(1, 2).transpose(2, 1).contiguous()), IMAGE),
    "squeeze, unsqueeze": (
        lambda: Of(
            lambda m, x: F.adaptive_avg_pool2d(x, 1).squeeze(-1).squeeze(2).unsqueeze(0).squeeze(
                (0,))),
        IMAGE),
    "squeeze all": (
        lambda: Of(lambda m, x: m.a(F.adaptive_avg_pool2d(x, 1).squeeze()), a=nn.Linear(6, 3)),
        IMAGE),
    "softmax": (lambda: nn.Sequential(nn.Linear(12, 5), nn.Softmax(1)), (12,)),
    "softmax of channels": (lambda: nn.Softmax(1), IMAGE),
    "dropout": (lambda: nn.Sequential(nn.Dropout(), nn.Linear(12, 5)), (12,)),
    "expand to the same": (lambda: Of(lambda m, x: (x * 2).expand(1, 6, 9, 8)), IMAGE),
    "half and back": (lambda: Of(lambda m, x: x.abs().to(torch.float64).float().detach()), IMAGE),
    "relu": (lambda: nn.ReLU(inplace=True), IMAGE),
    "relu before pool": (
        lambda: nn.Sequential(nn.Conv2d(6, 4, 3), nn.MaxPool2d(2), nn.ReLU()), IMAGE),
    "relu6": (nn.ReLU6, IMAGE),
    "hardtanh": (lambda: nn.Hardtanh(-0.5, 2.0), IMAGE),
    "clamp": (lambda: Of(lambda m, x: x.clamp(-0.7, 0.9)), IMAGE),
    "clamp from below": (lambda: Of(lambda m, x: x.clamp(min=0.25)), IMAGE),
    "clamp_min": (lambda: Of(lambda m, x: torch.clamp_min(x, -0.25)), IMAGE),
    "sigmoid": (nn.Sigmoid, IMAGE),
    "tanh": (nn.Tanh, IMAGE),
    "hardswish": (nn.Hardswish, IMAGE),
    "hardsigmoid": (nn.Hardsigmoid, IMAGE),
    "silu": (lambda: nn.SiLU(inplace=True), IMAGE),
    "silu by hand": (lambda: Of(lambda m, x: x * torch.sigmoid(x)), IMAGE),
    "hardswish by hand": (lambda: Of(lambda m, x: x * F.relu6(x + 3) / 6), IMAGE),
    "gelu": (nn.GELU, IMAGE),
    "gelu by tanh": (lambda: nn.GELU("tanh"), IMAGE),
    "mish": (nn.Mish, IMAGE),
    "leaky relu": (lambda: nn.LeakyReLU(0.2), IMAGE),
    "prelu": (nn.PReLU, IMAGE),
    "prelu of channels": (
        lambda: Of(
            lambda m, x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, -0.6]))), IMAGE),
    "elu": (lambda: nn.ELU(0.7), IMAGE),
    "selu": (nn.SELU, IMAGE),
    "celu": (lambda: nn.CELU(0.8), IMAGE),
    "softplus": (lambda: nn.Softplus(2.0), IMAGE),
    "exp": (lambda: Of(lambda m, x: torch.exp(x)), IMAGE),
    "expm1, log1p": (
        lambda: Of(lambda m, x: torch.expm1(x) + torch.log1p(x.abs())), IMAGE),
    "rsqrt": (lambda: Of(lambda m, x: torch.rsqrt(x.abs() + 1)), IMAGE),
    "log": (lambda: Of(lambda m, x: torch.log(x.abs() + 1)), IMAGE),
    "erf": (lambda: Of(lambda m, x: torch.erf(x)), IMAGE),
    "square root": (lambda: Of(lambda m, x: torch.sqrt(x.abs() + 1)), IMAGE),
    "reciprocal": (lambda: Of(lambda m, x: torch.reciprocal(x.abs() + 1)), IMAGE),
    "power": (lambda: Of(lambda m, x: (x.abs() + 0.1) ** 1.5), IMAGE),
    "floor": (lambda: Of(lambda m, x: torch.floor(x * 4) / 4 + m.a(x), a=nn.Conv2d(6, 6, 1)),
              IMAGE),
    "round": (lambda: Of(lambda m, x: torch.round(m.a(x)), a=nn.Conv2d(6, 6, 1)), IMAGE),
    "negative": (lambda: Of(lambda m, x: torch.neg(x)), IMAGE),
}  # fmt: skip
