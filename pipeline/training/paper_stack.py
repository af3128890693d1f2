"""Many trials of one small chain as one network: every tensor has them side by side.

Computes what ``paper_kernel.c`` and ``pipeline/quantize/simulated.py`` compute, forward bit for bit
on the grids, in operators that PyTorch has for any device; on CUDA a whole step is one graph.

Activations are (g, c, n, h, w): g groups, several for each trial so that the device has enough to
do, each of n images. A convolution is a product of matrices for each group: of the weights and of
the image's windows as columns. In 10 bits of fraction (TF32) integers of 4 bits are exact, and so
are their sums in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, max_pool2d, pad

from pipeline.quantize.power_of_two import Format
from pipeline.quantize.simulated import ACTIVATION, BIAS, LOGIT, PIXEL_EXPONENT, WEIGHT
from pipeline.training.paper_kernel import FLOAT, QUANTIZED, Chain


@dataclass(frozen=True)
class Shapes:
    """Layout of a trial's parameters in its row, in the order of ``paper_kernel.c``.

    Attributes:
        outputs, taps: of each layer, the dense one last.
    """

    outputs: tuple[int, ...]
    taps: tuple[int, ...]

    @classmethod
    def of(cls, chain: Chain) -> Shapes:
        depths = (chain.depth, *(layer.channels for layer in chain.layers))
        windows = (*(layer.kernel**2 for layer in chain.layers), chain.sides[-1] ** 2)
        taps = tuple(depth * window for depth, window in zip(depths, windows, strict=True))
        return cls((*depths[1:], chain.classes), taps)

    @property
    def sizes(self) -> list[int]:
        """Weights and biases, layer by layer; the thresholds follow."""
        pairs = zip(self.outputs, self.taps, strict=True)
        return [size for out, taps in pairs for size in (out * taps, out)]


def logits(chain: Chain, rows: Tensor, images: Tensor, mode: int, groups: int = 1) -> Tensor:
    """
    Args:
        rows: (t, count)
        images: (t, n, side, side, c) of 0…15
        groups: a divisor of n.

    Returns:
        (t, n, classes)
    """
    trials, shapes = len(rows), Shapes.of(chain)
    values, log2 = torch.split(rows, [sum(shapes.sizes), 3 * len(shapes.taps) - 1], 1)
    grids = None
    if mode != FLOAT:
        grids = Grids.of(shapes, log2 if mode == QUANTIZED else log2.detach())
        values = grids.parameters(values, shapes)
    parts = torch.split(values, shapes.sizes, 1)

    def spread(each: Tensor) -> Tensor:
        return each.unsqueeze(1).expand(trials, groups, *each.shape[1:]).flatten(0, 1)

    x = images.reshape(trials * groups, -1, *images.shape[2:])  # (g, n, side, side, c)
    x = (x.permute(0, 4, 1, 2, 3).to(rows.dtype) / 16).contiguous()
    for number, layer in enumerate(chain.layers):
        weight = parts[2 * number].reshape(trials, layer.channels, -1)
        bias = parts[2 * number + 1]
        x = _Convolution.apply(  # type: ignore[no-untyped-call]
            x, spread(weight), spread(bias), layer.kernel, layer.stride
        )
        if grids is None:
            x = torch.relu(x)
        else:
            x = _Grid.apply(  # type: ignore[no-untyped-call]
                x, *(spread(each) for each in grids.output(number)), *bounds(ACTIVATION)
            )
        if layer.pooled:
            pooled = max_pool2d(x.flatten(0, 1), 2)
            x = pooled.reshape(*x.shape[:3], *pooled.shape[2:])
    weight, bias = parts[-2].reshape(trials, chain.classes, -1), parts[-1]
    features = x.transpose(1, 2).flatten(2)  # (g, n, taps)
    result = torch.baddbmm(spread(bias).unsqueeze(1), features, spread(weight).transpose(1, 2))
    return result.reshape(trials, -1, chain.classes)


def losses(
    logits: Tensor, labels: Tensor, shares: Tensor, hard: float, temperature: float
) -> Tensor:
    """(t, n): cross-entropy of each image, with the labels and with the teacher's shares.

    Args:
        logits: (t, n, classes)
        labels: (t, n)
        shares: (t, n, classes), in any unit.
    """
    wanted = shares.to(logits.dtype)
    wanted = wanted / wanted.sum(2, keepdim=True)
    soft = -(wanted * log_softmax(logits / temperature, 2)).sum(2)
    label = -log_softmax(logits, 2).gather(2, labels.long().unsqueeze(2)).squeeze(2)
    return hard * label + (1 - hard) * temperature**2 * soft


@dataclass(frozen=True)
class Grids:
    """log2 thresholds, steps of the grids and their inverses: (t, three for each layer: weights,
    biases, outputs; the last layer has no outputs). ``QuantizedLayer.exponents`` for all trials.
    """

    log2: Tensor
    steps: Tensor
    inverse: Tensor

    @classmethod
    def of(cls, shapes: Shapes, log2: Tensor) -> Grids:
        fraction_bits = _constants(shapes, log2.device).fraction_bits
        wanted = torch.ceil(log2.detach()).to(torch.int32) - fraction_bits
        found, incoming = list[Tensor](), torch.full_like(wanted[:, 0], PIXEL_EXPONENT)
        for number, taps in enumerate(shapes.taps):
            weight, bias, *out = wanted[:, 3 * number : 3 * number + 3].unbind(1)
            highest = weight + incoming
            lowest = highest - _left_shift_limit(taps)
            if out:
                incoming = torch.maximum(out[0], lowest + 1)
                highest = torch.minimum(highest, incoming - 1)
                out = [incoming]
            found += [weight, torch.clamp(bias, lowest, highest), *out]
        exponents = torch.stack(found, 1)
        log2 = torch.where(exponents == wanted, log2, log2.detach())
        return cls(log2, _power(exponents), _power(-exponents))

    def output(self, layer: int) -> tuple[Tensor, Tensor, Tensor]:
        at = 3 * layer + 2
        return self.log2[:, at], self.steps[:, at], self.inverse[:, at]

    def parameters(self, values: Tensor, shapes: Shapes) -> Tensor:
        """Return all weights and biases (t, count) on their grids, at once."""
        of = _constants(shapes, values.device).of_parameters
        log2, steps, inverse = (
            each.index_select(1, of) for each in (self.log2, self.steps, self.inverse)
        )
        result: Tensor = _Parameters.apply(  # type: ignore[no-untyped-call]
            values, log2, steps, inverse, shapes
        )
        return result


class Constants(NamedTuple):
    """Constants on a device: ``part`` of each parameter, and its bounds; which of the grids are
    parameters' and not outputs'; bits of the fraction of each grid."""

    part: Tensor
    low: Tensor
    high: Tensor
    of_parameters: Tensor
    fraction_bits: Tensor


@cache
def _constants(shapes: Shapes, device: torch.device) -> Constants:
    """Made once: no graph of a device may copy from the host."""
    layers, counts = len(shapes.taps), torch.tensor(shapes.sizes)
    part = torch.arange(2 * layers).repeat_interleave(counts)
    low, high = torch.tensor([bounds(WEIGHT), bounds(BIAS)] * layers).float()[part].unbind(1)
    of_parameters = torch.tensor([n for n in range(3 * layers - 1) if n % 3 < 2])
    bits = [each.fraction_bits for each in (WEIGHT, BIAS, ACTIVATION)] * layers
    fraction_bits = torch.tensor(bits[:-1], dtype=torch.int32)
    every = part, low, high, of_parameters, fraction_bits
    return Constants(*(each.to(device) for each in every))


def bounds(format: Format) -> tuple[int, int]:
    return format.dtype.minimum, format.dtype.maximum


def _left_shift_limit(taps: int) -> int:
    worst = taps * ACTIVATION.dtype.maximum * -WEIGHT.dtype.minimum
    room = LOGIT.maximum - BIAS.dtype.maximum - 1
    return max(0, math.floor(math.log2(room / worst)))


def _power(exponents: Tensor) -> Tensor:
    """2**exponent, exactly."""
    return ((exponents + 127) << 23).view(torch.float32)


class _Grid(torch.autograd.Function):
    """``power_of_two._Quantize`` for (g, …) with thresholds and steps (g,)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, log2: Tensor, step: Tensor, inverse: Tensor, low: int, high: int
    ) -> Tensor:
        step, inverse = (each.reshape(-1, *(1 for _ in x.shape[1:])) for each in (step, inverse))
        units = torch.round(x * inverse)
        clipped = units.clamp(low, high)
        ctx.save_for_backward(units == clipped, clipped.mul_(step), x)
        return clipped

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (inside, y, x) = gradients, ctx.saved_tensors
        to_x = gradient * inside
        to_log2 = None
        if ctx.needs_input_grad[1]:
            left, right = _products(gradient, y), _products(to_x, x)
            to_log2 = math.log(2) * (left - right)
        return to_x, to_log2, None, None, None, None


def _products(a: Tensor, b: Tensor) -> Tensor:
    """Sums of a * b for each of the first dimension."""
    return (a * b).flatten(1).sum(1)


class _Parameters(torch.autograd.Function):
    """The same for rows of parameters (t, count), with thresholds and steps (t, parts)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, log2: Tensor, steps: Tensor, inverse: Tensor, shapes: Shapes
    ) -> Tensor:
        fixed = _constants(shapes, x.device)
        step, inverse = (each.index_select(1, fixed.part) for each in (steps, inverse))
        units = torch.round(x * inverse)
        clipped = units.clamp(fixed.low, fixed.high)
        ctx.save_for_backward(units == clipped, clipped.mul_(step), x)
        ctx.sizes = shapes.sizes
        return clipped

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (inside, y, x) = gradients, ctx.saved_tensors
        to_x = gradient * inside
        to_log2 = None
        if ctx.needs_input_grad[1]:
            each = (gradient * y - to_x * x).split(ctx.sizes, 1)
            to_log2 = math.log(2) * torch.stack([part.sum(1) for part in each], 1)
        return to_x, to_log2, None, None, None


class _Convolution(torch.autograd.Function):
    """Valid, (g, c, n, h, w) -> (g, out, n, h', w'); weights (g, out, c * k * k), biases (g, out).

    The gradient of the input is a convolution of the output's, spread by the stride and padded,
    with the turned kernel.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, kernel: int, stride: int
    ) -> Tensor:
        given = _columns(x, kernel, stride)
        ctx.save_for_backward(given, weight)
        ctx.shape, ctx.kernel, ctx.stride = x.shape, kernel, stride
        sums = torch.baddbmm(bias.unsqueeze(2), weight, given)
        sides = ((side - kernel) // stride + 1 for side in x.shape[3:])
        return sums.reshape(*sums.shape[:2], x.shape[2], *sides)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        given, weight = ctx.saved_tensors
        (gradient,), kernel, stride = gradients, ctx.kernel, ctx.stride
        flat = gradient.flatten(2)
        to_weight, to_bias = torch.bmm(flat, given.transpose(1, 2)), flat.sum(2)
        if not ctx.needs_input_grad[0]:
            return None, to_weight, to_bias, None, None
        _, depth, _, *sides = ctx.shape
        edge = kernel - 1
        if stride == 1:
            wide = pad(gradient, (edge, edge, edge, edge))
        else:
            wide = gradient.new_zeros(*gradient.shape[:3], *(side + edge for side in sides))
            at = [slice(edge, edge + (n - 1) * stride + 1, stride) for n in gradient.shape[3:]]
            wide[..., at[0], at[1]] = gradient
        windows = weight.reshape(len(weight), -1, depth, kernel, kernel)
        turned = windows.flip(3, 4).transpose(1, 2).flatten(2)
        to_x = torch.bmm(turned, _columns(wide, kernel, 1))
        return to_x.reshape(ctx.shape), to_weight, to_bias, None, None


def _columns(x: Tensor, kernel: int, stride: int) -> Tensor:
    """Return the windows: (g, c, n, h, w) -> (g, c * k * k, n * h' * w')"""
    windows = x.unfold(3, kernel, stride).unfold(4, kernel, stride)
    return windows.permute(0, 1, 5, 6, 2, 3, 4).flatten(1, 3).flatten(2)
