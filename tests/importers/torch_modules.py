"""One small PyTorch module for each operator and option that can be imported."""

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


def signal(function: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
    """Apply ``function`` to a signal, of one dimension, (n, 3, l), after a convolution."""
    return Of(
        lambda m, x: function(m.norm(m.conv(x))),
        conv=nn.Conv1d(3, 8, 3, padding=1), norm=nn.BatchNorm1d(8),
    )  # fmt: skip


def attended(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    return F.scaled_dot_product_attention(torch.ops.aten.alias(x), x, x, mask, scale=0.3)


SEEN = torch.arange(81).reshape(9, 9) % 7 < 5
BIAS = (torch.arange(81.0).reshape(9, 9) % 5 - 2).masked_fill(~SEEN, -torch.inf)


IMAGE: Shape = (6, 9, 8)

torch.manual_seed(3)  # whatever else has been imported
IMAGES: dict[str, nn.Module] = {
    "conv": nn.Conv2d(6, 5, 3),
    "conv same": nn.Conv2d(6, 5, 3, padding="same", bias=False),
    "conv same even": nn.Conv2d(6, 5, (4, 2), padding="same"),
    "conv strided": nn.Conv2d(6, 5, (3, 2), stride=(2, 3), padding=(1, 0)),
    "conv dilated": nn.Conv2d(6, 5, 3, dilation=(2, 1), padding=2),
    "conv grouped": nn.Conv2d(6, 8, 3, groups=2, padding=1),
    "depthwise": nn.Conv2d(6, 6, 3, groups=6, padding=1),
    "depthwise multiplier": nn.Conv2d(6, 12, 3, groups=6, stride=2),
    "pointwise": nn.Conv2d(6, 16, 1),
    "conv, norm, relu6": nn.Sequential(nn.Conv2d(6, 5, 3), nn.BatchNorm2d(5), nn.ReLU6()),
    "norm alone": nn.Sequential(nn.BatchNorm2d(6), nn.ReLU()),
    "norm without factors": nn.Sequential(nn.BatchNorm2d(6, affine=False), nn.Conv2d(6, 4, 3)),
    "norm ahead of padding": nn.Sequential(nn.BatchNorm2d(6), nn.Conv2d(6, 4, 3, padding=1)),
    "convolution":
        WithConstant(lambda x, c: torch.convolution(
            x, c, None, [1, 2], [1, 0], [1, 1], False, [0, 0], 2).clone(), 4, 3, 3, 3),
    "max pool": nn.MaxPool2d(2),
    "max pool padded": nn.MaxPool2d(3, 2, 1),
    "max pool ceiled": nn.MaxPool2d((2, 3), ceil_mode=True),
    "max pool with indices": Of(lambda m, x: F.max_pool2d(x, 2, return_indices=True)[0]),
    "global max pool": nn.AdaptiveMaxPool2d(1),
    "average pool": nn.AvgPool2d(2),
    "average pool padded": nn.AvgPool2d(3, 2, 1),
    "average pool, padding left out": nn.AvgPool2d(3, 2, 1, count_include_pad=False),
    "adaptive pool": nn.AdaptiveAvgPool2d((3, 2)),
    "global average pool": nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)),
    "mean": Of(lambda m, x: x.mean((-1, -2))),
    "mean of rows": Of(lambda m, x: x.mean(2, keepdim=True)),
    "greatest": Of(lambda m, x: x.amax((2, 3))),
    "add with alpha": Of(lambda m, x: torch.add(x, m.a(x), alpha=0.5), a=nn.Conv2d(6, 6, 1)),
    "residual": Of(lambda m, x: F.relu(x + m.a(x)), a=nn.Conv2d(6, 6, 3, padding=1)),
    "subtract": Of(lambda m, x: m.a(x) - m.b(x), a=nn.Conv2d(6, 4, 1), b=nn.Conv2d(6, 4, 1)),
    "multiply": Of(lambda m, x: m.a(x) * m.b(x), a=nn.Conv2d(6, 4, 1), b=nn.Conv2d(6, 4, 1)),
    "twice": Of(lambda m, x: x + x),
    "square": Of(lambda m, x: x * x),
    "squeeze and excite":
        Of(lambda m, x: x * torch.sigmoid(m.a(F.relu(m.b(x.mean((2, 3), keepdim=True))))),
           a=nn.Conv2d(3, 6, 1), b=nn.Conv2d(6, 3, 1)),
    "add number": Of(lambda m, x: x + 1.5),
    "number minus": Of(lambda m, x: 1 - x),
    "times number": Of(lambda m, x: 2 * x),
    "by number": Of(lambda m, x: x / 3),
    "number by": Of(lambda m, x: 1 / (x.abs() + 1)),
    "add channels": WithConstant(lambda x, c: x + c, 6, 1, 1),
    "channels minus": WithConstant(lambda x, c: c - x, 1, 6, 1, 1),
    "times channels": WithConstant(lambda x, c: x * c, 6, 1, 1),
    "by channels": WithConstant(lambda x, c: x / c, 6, 1, 1),
    "add image": WithConstant(lambda x, c: x + c, 1, 6, 9, 8),
    "times image": WithConstant(lambda x, c: x * c, 1, 9, 8),
    "scaled convolution":
        nn.Sequential(nn.Conv2d(6, 5, 3), WithConstant(lambda x, c: x * c, 5, 1, 1)),
    "concatenate":
        Of(lambda m, x: torch.cat([m.a(x), x, torch.sigmoid(x)], 1), a=nn.Conv2d(6, 4, 1)),
    "slice of channels": Of(lambda m, x: x[:, 1:4] + x[:, -3:]),
    "whole slice": Of(lambda m, x: x[:, :, :].abs()),
    "strided slice": Of(lambda m, x: m.a(x[:, :, ::2, 1:-1]), a=nn.Conv2d(6, 4, 3)),
    "select": Of(lambda m, x: m.a(x[:, :, 2, -1]), a=nn.Linear(6, 3)),
    "chunks": Of(lambda m, x: torch.cat([c * (n + 1) for n, c in enumerate(x.chunk(2, 1))], 1)),
    "split": Of(lambda m, x: x.split(4, 1)[1].abs()),
    "split by sizes": Of(lambda m, x: x.split((1, 2, 3), 1)[2] * 2),
    "nearest neighbours": nn.Sequential(nn.Conv2d(6, 4, 3, 2), nn.Upsample(scale_factor=(2, 3))),
    "transposed": nn.Sequential(
        nn.ConvTranspose2d(6, 4, 3, 2, 1, 1), nn.BatchNorm2d(4), nn.ReLU(),
        nn.ConvTranspose2d(4, 6, (2, 3), (2, 1), groups=2, bias=False),
    ),
    "attention": Of(
        lambda m, x: m.a(*[x.flatten(2)] * 3)[0].bmm(x.flatten(2)[:, :1].transpose(1, 2)),
        a=nn.MultiheadAttention(72, 2, batch_first=True),
    ),
    "attention with a mask": Of(lambda m, x: (attended(x, SEEN) + attended(x, BIAS)).flatten(1)),
    "attention to what was before": Of(lambda m, x: F.scaled_dot_product_attention(
        x, x[:, :2].abs(), x[:, 2:4], is_causal=True, enable_gqa=True).flatten(1)),
    "hidden scores": Of(
        lambda m, x: ((x @ x.mT + BIAS).masked_fill(~SEEN, -1e9).softmax(3) @ x).flatten(1)),
    "norms": nn.Sequential(
        nn.InstanceNorm2d(6, affine=True), nn.Conv2d(6, 4, 1), nn.GroupNorm(2, 4), nn.ReLU(),
        nn.LayerNorm((9, 8)), nn.RMSNorm(8), nn.Flatten(),
    ),
    "greatest of channels": Of(lambda m, x: x.argmax(1)),
    "least of rows": Of(lambda m, x: x.argmin(2, keepdim=True)),
    "products": Of(lambda m, x: (
        (x @ x.transpose(2, 3)).softmax(2) @ attended(x[:, :1])
    ).flatten(1)),
    "reductions": Of(
        lambda m, x: m.a(x).sum((1, 3)) + x.amin(1).logsumexp(2)
        + torch.linalg.vector_norm(x, dim=(1, 3)),
        a=nn.MaxPool2d(2, 1, 1, dilation=(2, 1)),
    ),
    "resized": nn.Sequential(
        nn.Upsample(scale_factor=1.7), nn.Upsample((9, 4), mode="bicubic"),
        nn.UpsamplingBilinear2d((5, 9)), nn.Upsample(scale_factor=1.7, mode="bilinear"),
        nn.AdaptiveAvgPool2d((4, 5)),
    ),
    "nearest, added":
        Of(lambda m, x: x + F.interpolate(m.a(x), size=x.shape[2:]), a=nn.AdaptiveAvgPool2d(1)),
    "channel shuffle": nn.Sequential(nn.Conv2d(6, 6, 1), nn.ChannelShuffle(3), nn.Conv2d(6, 4, 3)),
    "rows and columns swapped":
        Of(lambda m, x: m.a(x.abs().permute(0, 1, 3, 2)), a=nn.Conv2d(6, 4, 3)),
    "channels apart": nn.Sequential(nn.ReLU(), nn.Flatten(2), nn.Linear(72, 5)),
    "pixels shuffled": nn.Sequential(nn.Conv2d(6, 8, 3), nn.PixelShuffle(2), nn.Conv2d(2, 4, 3)),
    "pixels back": Of(lambda m, x: m.a(F.pixel_unshuffle(x[:, :, 1:], 2)), a=nn.Conv2d(24, 4, 3)),
    "flipped": Of(lambda m, x: m.a(x.flip(1, -1)), a=nn.Conv2d(6, 4, 3)),
    "rolled": Of(lambda m, x: m.a(x.roll((1, -2), (2, 3))), a=nn.Conv2d(6, 4, 3)),
    "chosen": Of(lambda m, x: m.a(x[:, [3, 0, 0, 5, 1, 2]]), a=nn.Conv2d(6, 4, 3)),
    "selected": WithConstant(lambda x, c: x.index_select(3, torch.tensor([7, 1, 0, 2])) * c, 4),
    "stacked": Of(lambda m, x: m.a(torch.stack((x.abs(), x), 2).flatten(1, 2)),
        a=nn.Conv2d(12, 4, 3)),
    "apart": Of(lambda m, x: x.unbind(1)[4] + x.unbind(1)[1]),
    "repeated": Of(lambda m, x: m.a(x.repeat(1, 2, 1, 3).tile((2, 1))), a=nn.Conv2d(12, 4, 3)),
    "interleaved": Of(lambda m, x: m.a(x.repeat_interleave(2, 1)), a=nn.Conv2d(12, 4, 3)),
    "broadcast": Of(lambda m, x: torch.cat([x, x.mean((2, 3), True).expand(-1, -1, 9, 8)], 1)),
    "borders": Of(lambda m, x: m.a(x) + m.b(x),
        a=nn.Conv2d(6, 4, 3, padding=1, padding_mode="reflect"),
        b=nn.Conv2d(6, 4, 3, padding=1, padding_mode="replicate")),
    "greater": Of(lambda m, x: torch.maximum(m.a(x), x.max(x - 1)), a=nn.Conv2d(6, 6, 1)),
    "smaller": Of(lambda m, x: torch.minimum(m.a(x), x.min(x + 1)), a=nn.Conv2d(6, 6, 1)),
    "quotient": Of(lambda m, x: x / (torch.sigmoid(m.a(x)) + 0.5), a=nn.Conv2d(6, 6, 1)),
    "where": Of(lambda m, x: torch.where(m.a(x) > x, x, m.a(x)), a=nn.Conv2d(6, 6, 1)),
    "where of numbers": Of(lambda m, x: torch.where((x < 0.5) & (x >= -1), x, -0.5)),
    "compared": Of(lambda m, x: (x <= 0.2) + (x.round() == 1) * x + (x.round() != 0) * 0.5 +
                   torch.logical_and(x < 1, x.logical_not()) * x.square()),
    "masked": Of(lambda m, x: x.masked_fill(torch.arange(8) > 5, -0.25)),
    "more functions": Of(lambda m, x: x.ceil() + x.trunc() + x.sign() + x.sin() + x.cos() +
                         x.exp() * torch.erf(x) - torch.neg(x)),
    "thresholds": nn.Sequential(nn.Threshold(0.1, -0.3), nn.Hardshrink(), nn.Softshrink(0.2)),
    "log of sigmoid": nn.LogSigmoid(),
    "cut off": nn.Sequential(nn.ZeroPad2d((-1, 2, -2, -1)), nn.ConstantPad2d(1, -0.5)),
    "concatenate rows": Of(lambda m, x: torch.cat([x, -x], 2)),
    "concatenate twice": Of(lambda m, x: torch.cat([x, x], 1)),
    "pad": nn.Sequential(nn.ZeroPad2d((1, 2, 0, 3)), nn.Conv2d(6, 3, 3)),
    "pad, n dimensions": Of(lambda m, x: torch.constant_pad_nd(x.abs(), (1, 1, 0, 2))),
    "permutes that cancel":
        Of(lambda m, x: m.a((x.permute(0, 2, 3, 1) * 2).permute(0, 3, 1, 2)), a=nn.Conv2d(6, 4, 3)),
    "transpose": Of(lambda m, x: x.abs().transpose(1, 2).transpose(2, 1).contiguous()),
    "squeeze, unsqueeze":
        Of(lambda m, x: x.mean((2, 3), True).squeeze(-1).squeeze(2).unsqueeze(0).squeeze((0,))),
    "squeeze all": Of(lambda m, x: m.a(F.adaptive_avg_pool2d(x, 1).squeeze()), a=nn.Linear(6, 3)),
    "softmax of channels": nn.Softmax(1),
    "expand to the same": Of(lambda m, x: (x * 2).expand(1, 6, 9, 8)),
    "half and back": Of(lambda m, x: x.abs().to(torch.float64).float().detach()),
    "relu before pool": nn.Sequential(nn.Conv2d(6, 4, 3), nn.MaxPool2d(2), nn.ReLU()),
    "hardtanh": nn.Hardtanh(-0.5, 2.0),
    "clamp from below": Of(lambda m, x: x.clamp(min=0.25)),
    "clamp_min": Of(lambda m, x: torch.clamp_min(x, -0.25)),
    **{kind.__name__.lower(): kind() for kind in (nn.ReLU6, nn.Sigmoid, nn.Tanh, nn.Hardswish,
        nn.Hardsigmoid, nn.GELU, nn.Mish, nn.PReLU, nn.SELU)},
    "silu": nn.SiLU(inplace=True),
    "hardswish by hand": Of(lambda m, x: x * F.relu6(x + 3) / 6),
    "gelu by tanh": nn.GELU("tanh"),
    "leaky relu": nn.LeakyReLU(0.2),
    "prelu of channels": Of(lambda m, x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, -0.6]))),
    "elu": nn.ELU(0.7),
    "celu": nn.CELU(0.8),
    "softplus": nn.Softplus(2.0),
    "expm1, log1p": Of(lambda m, x: torch.expm1(x) + torch.log1p(x.abs())),
    "of positive numbers": Of(lambda m, x: (y := x.abs() + 1).log() + y.sqrt() * y.rsqrt() +
                              y.reciprocal()),
    "power": Of(lambda m, x: (x.abs() + 0.1) ** 1.5),
    "floor": Of(lambda m, x: torch.floor(x * 4) / 4 + m.a(x), a=nn.Conv2d(6, 6, 1)),
    "round": Of(lambda m, x: torch.round(m.a(x)), a=nn.Conv2d(6, 6, 1)),
}  # fmt: skip
OTHERS: dict[str, tuple[nn.Module, Shape]] = {
    "norm of features": (nn.Sequential(nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 3)), (12,)),
    "norm after flatten":
        (nn.Sequential(nn.Flatten(), nn.BatchNorm1d(120), nn.Linear(120, 4)), (6, 5, 4)),
    "linear, norm, relu": (nn.Sequential(nn.Linear(12, 5), nn.BatchNorm1d(5), nn.ReLU()), (12,)),
    "linear over positions": (nn.Linear(10, 5), (7, 10)),
    "matmul": (WithConstant(lambda x, c: x @ c, 12, 5), (12,)),
    "mm, t": (WithConstant(lambda x, c: torch.mm(x.abs().t().t(), c), 12, 5), (12,)),
    "addmm": (WithConstant(lambda x, c: torch.addmm(c[:, 0], x, c.T), 5, 12), (12,)),
    "conv 1-D": (nn.Conv1d(10, 6, 3, padding=1, stride=2), (10, 1)),
    "flatten": (Of(lambda m, x: m.a(x.flatten(1)), a=nn.Linear(120, 7)), (6, 5, 4)),
    "view": (Of(lambda m, x: m.a(x.view(1, -1)), a=nn.Linear(120, 7)), (6, 5, 4)),
    "reshape": (Of(lambda m, x: m.a(x.reshape(x.size(0), -1)), a=nn.Linear(120, 7)), (6, 5, 4)),
    "flatten of channels last":
        (Of(lambda m, x: m.a(x.permute(0, 2, 3, 1).flatten(1)), a=nn.Linear(120, 3)), (6, 5, 4)),
    "softmax": (nn.Sequential(nn.Linear(12, 5), nn.Softmax(1)), (12,)),
    "log softmax": (nn.Sequential(nn.Linear(12, 5), nn.LogSoftmax(1)), (12,)),
    "dropout": (nn.Sequential(nn.Dropout(), nn.Linear(12, 5)), (12,)),
    "norm after an activation":
        (nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.BatchNorm1d(5)), (6,)),
    "mean of channels and rows":
        (Of(lambda m, x: m.a(x).mean((1, 2)), a=nn.Conv2d(4, 3, 1)), (4, 5, 6)),
    "signal, relu": (signal(F.relu), (3, 20)),
    "signal, maximum": (signal(lambda x: F.max_pool1d(x, 3, 2, 1)), (3, 20)),
    "signal, average": (signal(lambda x: F.avg_pool1d(x, 4)), (3, 20)),
    "signal, resized": (signal(
        lambda x: F.interpolate(F.interpolate(x, 31), scale_factor=0.6, mode="linear")
    ), (3, 20)),
    "signal, transposed": (signal(nn.ConvTranspose1d(8, 5, 4, 3, 1)), (3, 20)),
    "signal, adaptive": (signal(lambda x: F.adaptive_avg_pool1d(x, 5)), (3, 20)),
    "signal, mean kept": (signal(lambda x: x.mean(-1, keepdim=True).flatten(1)), (3, 20)),
    **{f"signal, {kind.__name__}": (Of(lambda m, x: m.a(x.mT)[0].mT,
                                       a=kind(3, 4, batch_first=True)), (3, 20))
       for kind in (nn.GRU, nn.LSTM)},
    "signal, greatest": (signal(lambda x: x.amax(2)), (3, 20)),
}  # fmt: skip
MODULES = {name: (module, IMAGE) for name, module in IMAGES.items()} | OTHERS
