"""Quantization that a module brings: what ``convert_pt2e`` makes (torchao, PT2E), after training
with it or without.

An activation is quantized and then dequantized; weights are integers that are dequantized. Here the
first says what the activation's integers mean, and both leave the real values what they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from pipeline.importers.float_graph import Affine
from pipeline.importers.functions import Composed
from pipeline.importers.layout import Value
from pipeline.importers.torch_call import Call, Stepped, Table

PREFIX = "quantized_decomposed."


def quantize(call: Call) -> Value:
    """scale, zero_point, quant_min, quant_max, dtype; uint8 is stored as int8, 128 less."""
    scale, zero_point, low, high, dtype = (call.get(index, "") for index in range(1, 6))
    if dtype not in (torch.int8, torch.uint8):
        raise call.builder.refuse(f"activations of {dtype} are not supported; int8 and uint8 are")
    x, scale, zero_point = call.x, float(scale), int(zero_point)
    least, most = (-128, 127) if dtype == torch.int8 else (0, 255)
    if (low, high) != (least, most):
        ends = (scale * (each - zero_point) for each in (max(low, least), min(high, most)))
        x = call.builder.function(x, Composed.of("clip", *ends))
    return call.builder.mark(x, Affine(scale, zero_point - least - 128))


def dequantize(call: Call) -> Value:
    return call.x


def stepped(target: str, values: torch.Tensor, args: tuple[Any, ...]) -> Stepped | torch.Tensor:
    """``values`` that the operator ``target`` dequantized, with the scales among its ``args``."""
    if not target.startswith(f"{PREFIX}dequantize_per_"):
        return values
    scales = torch.as_tensor(args[1]).double().numpy().reshape(-1)
    return Stepped(values, scales, 0 if "per_tensor" in target else args[3])


def is_quantized(network: nn.Module) -> bool:
    """Check whether any part of ``network`` is a graph with quantized activations."""
    graphs = (part.graph for part in network.modules() if isinstance(part, torch.fx.GraphModule))
    return any(str(node.target).startswith(PREFIX) for graph in graphs for node in graph.nodes)


OPERATORS: Table = {
    f"{PREFIX}quantize_per_tensor.default": quantize,
    f"{PREFIX}quantize_per_tensor.tensor": quantize,
    f"{PREFIX}dequantize_per_tensor.default": dequantize,
    f"{PREFIX}dequantize_per_tensor.tensor": dequantize,
    f"{PREFIX}dequantize_per_channel.default": dequantize,
}
