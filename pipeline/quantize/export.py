"""A trained network with thresholds to the integer graph, exactly."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d, Dense
from pipeline.graph.operators.pairwise import Add
from pipeline.graph.operators.placing import Rearrange
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.graph.tensor import DType, IntArray, Tensor
from pipeline.models.network import Shape
from pipeline.quantize.power_of_two import Format
from pipeline.quantize.range_check import check_sums, extremes, fit
from pipeline.quantize.simulated import (
    ACTIVATION,
    BIAS,
    LOGIT,
    PIXEL_EXPONENT,
    SIGNED,
    QuantizedLayer,
    QuantizedNetwork,
    QuantizedUnit,
)

IMAGE, POOLED, LOGITS = "image", "pooled", "logits"
PIXEL = DType.parse("uint8")
WIDE_LOGIT = DType.parse("int32")


@dataclass
class _Builder:
    """Collects tensors, constants and operators; ``last`` is the newest activation."""

    tensors: dict[str, Tensor]
    last: str
    constants: dict[str, IntArray] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)

    def constant(self, name: str, values: IntArray, dtype: DType, exponent: int) -> None:
        self.tensors[name] = Tensor(name, values.shape, dtype, (2.0**exponent,))
        self.constants[name] = values

    def append(self, op: Operator, dtype: DType, scale: float, zero_point: int = 0) -> None:
        shape = op.infer(self.tensors)
        self.tensors[op.output] = Tensor(op.output, shape, dtype, (scale,), zero_point)
        self.operators.append(op)
        self.last = op.output


@torch.no_grad()
def to_graph(name: str, network: QuantizedNetwork, input_shape: Shape) -> Graph:
    """Return the integer graph whose logits are ``network``'s, integer for integer.

    Args:
        name: of the graph.
        network: thresholds set; shapes as large as its weights.
        input_shape: of the u8 image, (h, w, c).

    Raises:
        ThimbleError: shapes that do not go together, or sums that int16 cannot hold.
    """
    builder = _Builder({IMAGE: Tensor(IMAGE, input_shape, PIXEL, (1 / 256,))}, IMAGE)
    size = network.pool.size
    shift = 2 * (size.bit_length() - 1) + PIXEL.bits - ACTIVATION.dtype.bits
    builder.append(
        AveragePool2d(
            network.pool_name,
            (IMAGE,),
            POOLED,
            kernel=(size, size),
            stride=(size, size),
            requant=PowerOfTwo(0, shift, "floor"),
        ),
        ACTIVATION.dtype,
        2.0**PIXEL_EXPONENT,
    )
    exponent = PIXEL_EXPONENT
    for layer_name, layer in network.layers.items():
        if isinstance(layer, QuantizedLayer):
            exponent = _weighted(builder, layer_name, layer, exponent)
        elif isinstance(layer, QuantizedUnit):
            exponent = _unit(builder, layer_name, layer, exponent)
        elif isinstance(layer, nn.MaxPool2d):
            last = builder.tensors[builder.last]
            builder.append(
                MaxPool2d(
                    layer_name,
                    (builder.last,),
                    layer_name.removeprefix("max"),
                    kernel=_pair(layer.kernel_size),
                    stride=_pair(layer.stride),
                ),
                last.dtype,
                last.scale[0],
            )
    return Graph(
        name,
        builder.tensors,
        tuple(builder.operators),
        builder.constants,
        (IMAGE,),
        (builder.last,),
    )


def _weighted(builder: _Builder, name: str, layer: QuantizedLayer, incoming: int) -> int:
    """Append a convolution or dense layer; returns log2 of its output's step."""
    steps = layer.exponents(float(incoming))
    acc, weight, bias = (
        round(float(steps.acc)),
        round(float(steps.weight)),
        round(float(steps.bias)),
    )
    out = bias if steps.out is None else round(float(steps.out))
    dtype, zero_point = _stored(layer.activation)
    requant = PowerOfTwo(left_shift=acc - bias, right_shift=out - bias)
    parameters = (f"{name}.weight", f"{name}.bias")
    values = layer.weights.integers(layer.layer.weight, weight).numpy()
    shape = builder.tensors[builder.last].shape
    if isinstance(layer.layer, nn.Conv2d):
        values = values.transpose(0, 2, 3, 1)  # (out, in, kh, kw) -> (out, kh, kw, in)
    elif len(shape) == 3:
        # flattened (c, h, w) -> (h, w, c)
        if values.shape[1] != np.prod(shape):
            raise ThimbleError(
                f"{name} has {values.shape[1]} inputs, but {builder.last} has {np.prod(shape)} "
                "elements: the weights and the model do not belong together"
            )
        height, width, channels = shape
        values = values.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
    builder.constant(parameters[0], np.ascontiguousarray(values), layer.weights.dtype, weight)
    biases = BIAS.integers(layer.bias, bias).numpy()
    builder.constant(parameters[1], biases, BIAS.dtype, bias)
    source = builder.tensors[builder.last]
    bits = layer.sum_bits
    if steps.out is None:  # nothing stores less of it: it may be as wide as it has to
        found = extremes(values, biases, source.dtype, requant)
        bits = bits if fit(found, bits) else WIDE_LOGIT.bits
        dtype = LOGIT if bits <= LOGIT.bits else WIDE_LOGIT
    check_sums(name, values, biases, source.dtype, requant, bits)
    op = _operator(name, layer, source.name, parameters, requant)
    builder.append(op, dtype, 2.0**out, zero_point)
    return out


def _stored(activation: Format) -> tuple[DType, int]:
    """Return an activation's type in memory and its zero point there: nibbles are unsigned."""
    if activation is SIGNED:
        return ACTIVATION.dtype, -SIGNED.dtype.minimum
    return activation.dtype, 0


def _unit(builder: _Builder, name: str, unit: QuantizedUnit, incoming: int) -> int:
    """Append a residual unit; returns log2 of its output's step. What is kept of its input comes
    first: then all of the input can go where the first convolution writes."""
    source, kept, exponent = builder.tensors[builder.last], f"{name}.kept", incoming
    height, width, channels = source.shape
    shape, ones = (height - 4, width - 4, channels), (1, 1, 1)
    op = Rearrange(
        kept, (source.name,), kept, shape=shape, axes=(0, 1, 2),
        starts=(2, 2, 0), steps=ones, repeats=ones,
    )  # fmt: skip
    builder.append(op, source.dtype, source.scale[0])
    if unit.matched is not None:
        exponent, kept = _weighted(builder, f"{name}.matched", unit.matched, incoming), builder.last
    builder.last = source.name
    first = _weighted(builder, f"{name}.first", unit.first, incoming)
    steps = exponent, _weighted(builder, f"{name}.second", unit.second, first)
    out = round(float(ACTIVATION.exponent(unit.out_log2)))
    finest = min(*steps, out)
    left, right = (PowerOfTwo(step - finest) for step in steps)
    both = kept, builder.last
    total = Add(
        f"{name}.sum", both, name, operands=both, left_shift=0,
        operand_requants=(left, right), requant=PowerOfTwo(0, out - finest),
    )  # fmt: skip
    builder.append(total, ACTIVATION.dtype, 2.0**out)
    return out


def _operator(
    name: str, layer: QuantizedLayer, source: str, parameters: tuple[str, str], requant: PowerOfTwo
) -> Operator:
    inner, activated = layer.layer, layer.out_log2 is not None
    if isinstance(inner, nn.Linear):
        output = name if activated else LOGITS
        return Dense(name, (source,), output, parameters, requant=requant)
    rows, columns = _pair(inner.padding)
    return Conv2d(
        name,
        (source,),
        name if activated else LOGITS,
        parameters,
        stride=_pair(inner.stride),
        dilation=_pair(inner.dilation),
        padding=(rows, rows, columns, columns),
        groups=inner.groups,
        requant=requant,
    )


def _pair(value: object) -> tuple[int, int]:
    """PyTorch's sizes are one number or two."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return int(value[0]), int(value[1])
    raise ThimbleError(f"quantize: {value!r} is not a size in rows and columns")
