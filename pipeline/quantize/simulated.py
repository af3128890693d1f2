"""A network computed as the firmware will, in float32 and bit for bit, and still trainable.

Integers are real multiples of a power of two: weights of 2**ew, activations of 2**ea, the
accumulator of 2**(ew + ea), the bias of 2**eb <= 2**(ew + ea), the result of 2**eo. Then
``acc << (ew + ea - eb)`` and the bias share one grid and the result is their sum divided by
2**(eo - eb): the shifts that ``PowerOfTwo`` carries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pipeline.graph.tensor import DType
from pipeline.models.network import ByteConv2d, PixelPool, ResidualUnit
from pipeline.quantize.layers import check_layers
from pipeline.quantize.power_of_two import Format

WEIGHT, BIAS, ACTIVATION = (Format(DType.parse(name)) for name in ("int4", "int8", "uint4"))
BYTE_WEIGHT, BYTE = (Format(DType.parse(name)) for name in ("int8", "uint8"))
"""Weights and activations of a ``ByteConv2d``."""
SIGNED = Format(DType.parse("int4"))
"""Summands of a residual unit; stored as uint4 with a zero point of 8."""
LOGIT = DType.parse("int16")
WIDE_BITS = 25
"""Bits of sums in which bytes take part, sign and all: float32 holds them exactly."""
PIXEL_EXPONENT = -4
"""Exponent of the pooled image: 0…15 stand for 0…15/16."""


THRESHOLDS = ("weight_log2", "bias_log2", "out_log2")
"""Names of a layer's log2 thresholds."""


@dataclass(frozen=True)
class Exponents:
    """log2 of the grid steps of one layer; ``out`` is None where the sum itself is the result."""

    acc: Tensor
    weight: Tensor
    bias: Tensor
    out: Tensor | None


class QuantizedLayer(nn.Module):
    """A convolution or dense layer with thresholds; ReLU is the clip to unsigned activations.

    ``source``, ``weights`` and ``activation`` are the formats of what it reads, has and makes.
    """

    def __init__(
        self,
        layer: nn.Conv2d | nn.Linear,
        activated: bool,
        source: Format = ACTIVATION,
        activation: Format = ACTIVATION,
    ) -> None:
        super().__init__()
        self.source, self.weights, self.activation = source, WEIGHT, activation
        if isinstance(layer, ByteConv2d):
            self.weights, self.activation = BYTE_WEIGHT, BYTE
        if layer.bias is None:
            layer.bias = nn.Parameter(torch.zeros(len(layer.weight)))
        self.layer = layer
        self.weight_log2 = nn.Parameter(torch.zeros(()))
        self.bias_log2 = nn.Parameter(torch.zeros(()))
        self.out_log2 = nn.Parameter(torch.zeros(())) if activated else None

    @property
    def bias(self) -> Tensor:
        assert self.layer.bias is not None
        return self.layer.bias

    @property
    def sum_bits(self) -> int:
        """Count the bits of the layer's accumulator."""
        return LOGIT.bits if self.source is ACTIVATION and self.weights is WEIGHT else WIDE_BITS

    @property
    def left_shift_limit(self) -> int:
        """The largest left shift at which any weights whatever keep its sums from overflow."""
        worst = self.layer.weight[0].numel()
        worst *= self.source.dtype.maximum * -self.weights.dtype.minimum
        room = (1 << self.sum_bits - 1) - BIAS.dtype.maximum - 2
        return max(0, math.floor(math.log2(room / worst)))

    def exponents(self, incoming: Tensor | float) -> Exponents:
        weight = self.weights.exponent(self.weight_log2)
        acc = weight + incoming
        lowest = acc.detach() - self.left_shift_limit
        highest = acc.detach()
        out = None
        if self.out_log2 is not None:
            # at least one bit goes, as in the published format: 2**(sR + 1), sR >= 0
            out = torch.maximum(self.activation.exponent(self.out_log2), lowest + 1)
            highest = torch.minimum(highest, out.detach() - 1)
        bias = torch.clamp(BIAS.exponent(self.bias_log2), lowest, highest)
        return Exponents(acc, weight, bias, out)

    def accumulate(self, x: Tensor, steps: Exponents) -> Tensor:
        """Real value of (acc << left) + bias: (n, c, h, w) -> (n, c', h', w') or (n, c')."""
        weight = self.weights.quantize(self.layer.weight, steps.weight)
        bias = BIAS.quantize(self.bias, steps.bias)
        if isinstance(self.layer, nn.Linear):
            return nn.functional.linear(x, weight, bias)
        result: Tensor = self.layer._conv_forward(x, weight, bias)
        return result

    def forward(self, x: Tensor, incoming: Tensor | float) -> tuple[Tensor, Tensor]:
        steps = self.exponents(incoming)
        value = self.accumulate(x, steps)
        if steps.out is None:
            return value, steps.bias
        return self.activation.quantize(value, steps.out), steps.out

    def calibrate(self, x: Tensor) -> None:
        """Set the thresholds to those of least squared error on what comes in."""
        self.weight_log2.fill_(self.weights.best_log2(self.layer.weight))
        self.bias_log2.fill_(BIAS.best_log2(self.bias))
        if self.out_log2 is not None:
            made = self.layer(x)
            made = made if self.activation.dtype.signed else made.clamp(min=0)
            self.out_log2.fill_(self.activation.best_log2(made))


class QuantizedUnit(nn.Module):
    """A residual unit: its convolutions on their grids, and a threshold of the sum, whose clip to
    unsigned activations is the ReLU."""

    def __init__(self, unit: ResidualUnit) -> None:
        super().__init__()
        self.first = QuantizedLayer(unit.first, activated=True)
        self.second = QuantizedLayer(unit.second, activated=True, activation=SIGNED)
        self.matched = None
        if unit.matched is not None:
            self.matched = QuantizedLayer(unit.matched, activated=True, activation=SIGNED)
        self.out_log2 = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, incoming: Tensor | float) -> tuple[Tensor, Tensor]:
        out = ACTIVATION.exponent(self.out_log2)
        return ACTIVATION.quantize(self.total(x, incoming), out), out

    def total(self, x: Tensor, incoming: Tensor | float) -> Tensor:
        """Add up what is quantized."""
        kept = ResidualUnit.middle(x)
        if self.matched is not None:
            kept, _ = self.matched(kept, incoming)
        made, _ = self.second(*self.first(x, incoming))
        total: Tensor = made + kept
        return total

    def calibrate(self, x: Tensor, incoming: Tensor | float) -> None:
        if self.matched is not None:
            self.matched.calibrate(ResidualUnit.middle(x))
        self.first.calibrate(x)
        self.second.calibrate(self.first(x, incoming)[0])
        self.out_log2.fill_(ACTIVATION.best_log2(self.total(x, incoming).clamp(min=0)))


class QuantizedNetwork(nn.Module):
    """The layers of an ``nn.Sequential`` after its pixel pool, quantized; shares its parameters."""

    def __init__(self, network: nn.Sequential) -> None:
        super().__init__()
        check_layers(network)
        names, layers = zip(*network.named_children(), strict=True)
        self.pool_name: str = names[0]
        self.pool: PixelPool = layers[0]
        self.layers, source = nn.ModuleDict(), ACTIVATION
        for name, layer, after in zip(names[1:], layers[1:], [*layers[2:], None], strict=True):
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                made = QuantizedLayer(layer, isinstance(after, nn.ReLU), source)
                self.layers[name], source = made, made.activation
            elif isinstance(layer, ResidualUnit):
                self.layers[name] = QuantizedUnit(layer)
            elif not isinstance(layer, nn.ReLU):
                self.layers[name] = layer

    @property
    def quantized(self) -> dict[str, QuantizedLayer]:
        """By name; those of a residual unit are called UNIT.first and so on."""
        found = self.layers.named_modules()
        return {n: m for n, m in found if isinstance(m, QuantizedLayer)}

    @property
    def has_units(self) -> bool:
        return any(isinstance(layer, QuantizedUnit) for layer in self.layers.values())

    @property
    def thresholds(self) -> dict[str, nn.Parameter]:
        return {n: p for n, p in self.layers.named_parameters() if n.endswith(THRESHOLDS)}

    @property
    def steps(self) -> dict[str, tuple[QuantizedLayer, Exponents]]:
        """The layers of a chain without residual units, each with the steps of its grids."""
        found, incoming = dict[str, tuple[QuantizedLayer, Exponents]](), float(PIXEL_EXPONENT)
        for name, layer in self.quantized.items():
            steps = layer.exponents(incoming)
            found[name] = layer, steps
            incoming = incoming if steps.out is None else float(steps.out.detach())
        return found

    def forward(self, pooled: Tensor) -> Tensor:
        """(n, c, h, w) pooled pixels in 0…15/16 -> (n, classes) real logits."""
        x, exponent = pooled, torch.tensor(float(PIXEL_EXPONENT))
        for layer in self.layers.values():
            if isinstance(layer, (QuantizedLayer, QuantizedUnit)):
                x, exponent = layer(x, exponent)
            else:
                x = layer(x)
        return x

    @torch.no_grad()
    def calibrate(self, pooled: Tensor) -> None:
        """Set every threshold to the one of least squared error, from the inputs onwards."""
        x, exponent = pooled, torch.tensor(float(PIXEL_EXPONENT))
        for layer in self.layers.values():
            if isinstance(layer, QuantizedLayer):
                layer.calibrate(x)
                x, exponent = layer(x, exponent)
            elif isinstance(layer, QuantizedUnit):
                layer.calibrate(x, exponent)
                x, exponent = layer(x, exponent)
            else:
                x = layer(x)

    def freeze(self) -> None:
        """Thresholds to their powers of two, no longer trained."""
        for threshold in self.thresholds.values():
            threshold.data.ceil_()
            threshold.requires_grad_(False)
