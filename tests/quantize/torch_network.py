"""A whole network of PyTorch's own quantized operators, at the scales that were chosen here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf

import numpy as np
import torch

from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.importers import float_nodes as nodes
from pipeline.importers.float_graph import Affine, FloatGraph, Node

Q = torch.ops.quantized
RELU = (0.0, inf)


@contextmanager
def qnnpack() -> Iterator[None]:
    """It computes exactly; x86's adds pairs in 16 bits on some processors."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "qnnpack"
    try:
        yield
    finally:
        torch.backends.quantized.engine = before


def outputs(
    source: FloatGraph, affines: Mapping[str, Affine], lowered: Graph, frames: IntArray
) -> IntArray:
    """(n, h, w, c) stored integers -> (n, classes): what PyTorch computes.

    Args:
        source: what was lowered, with the biases that the integer graph has.
        lowered: whose weights' scales are taken.
    """
    real = torch.from_numpy(frames - affines[source.input].zero_point).permute(0, 3, 1, 2)
    values = {source.input: stored(affines[source.input].scale * real, affines[source.input])}
    with qnnpack():
        for node in source.nodes:
            inputs = [values[name] for name in node.inputs]
            values[node.output] = computed(node, inputs, affines[node.output], lowered)
    return values[source.output].int_repr().flatten(1).numpy().astype(np.int64) - 128


def stored(real: torch.Tensor, affine: Affine) -> torch.Tensor:
    """PyTorch stores activations as uint8: 128 more."""
    return torch.quantize_per_tensor(
        real.float(), affine.scale, affine.zero_point + 128, torch.quint8
    )


def computed(node: Node, inputs: list[torch.Tensor], to: Affine, lowered: Graph) -> torch.Tensor:
    assert node.clip in (None, RELU), "PyTorch fuses nothing else"
    relu, ends = node.clip == RELU, (to.scale, to.zero_point + 128)
    result: torch.Tensor
    match node:
        case nodes.Convolution():
            pads = node.padding
            assert pads[0] == pads[1] and pads[2] == pads[3]
            packed = Q.conv2d_prepack(
                weights(node, lowered).contiguous(), torch.from_numpy(node.bias).float(),
                node.stride, (pads[0], pads[2]), node.dilation, node.groups,
            )  # fmt: skip
            result = (Q.conv2d_relu if relu else Q.conv2d)(inputs[0], packed, *ends)
        case nodes.Linear():
            flat = inputs[0].permute(0, 2, 3, 1) if inputs[0].ndim == 4 else inputs[0]
            packed = Q.linear_prepack(weights(node, lowered), torch.from_numpy(node.bias).float())
            run = Q.linear_relu if relu else Q.linear
            result = run(flat.flatten(1).contiguous(), packed, *ends)
        case nodes.Sum():
            result = (Q.add_relu if relu else Q.add)(*inputs, *ends)
        case nodes.MaxPool():
            result = torch.nn.functional.max_pool2d(inputs[0], node.kernel, node.stride)
        case nodes.GlobalMean():  # PyTorch's own keeps the input's scale
            result = stored(inputs[0].dequantize().mean((2, 3), keepdim=True), to)
        case nodes.Reshaped():
            result = inputs[0]
        case _:
            raise NotImplementedError(type(node).__name__)
    return result


def weights(node: nodes.Weighted, lowered: Graph) -> torch.Tensor:
    """(c_out, c_in, kh, kw) or (c_out, c_in), a scale for each output channel."""
    steps = torch.tensor(lowered.tensors[f"{node.name}.weight"].scale, dtype=torch.float64)
    real = torch.from_numpy(node.weights).float()
    shaped = real.permute(0, 3, 1, 2) if real.ndim == 4 and isinstance(node, nodes.Convolution) \
        else real.flatten(1)  # fmt: skip
    zeros = torch.zeros(len(steps), dtype=torch.int64)
    return torch.quantize_per_channel(shaped, steps, zeros, 0, torch.qint8)
