"""A small network as one row of numbers, as the compiled loops have it, and back."""

from __future__ import annotations

import torch
from torch import Tensor

from pipeline.models.network import Model
from pipeline.quantize.simulated import QuantizedNetwork
from pipeline.training.paper_kernel import F32


def parameters(network: QuantizedNetwork) -> list[Tensor]:
    """Return the parameters in the order of the kernel's rows."""
    layers = list(network.quantized.values())
    weights = [tensor for each in layers for tensor in (each.layer.weight, each.bias)]
    thresholds = [(each.weight_log2, each.bias_log2, each.out_log2) for each in layers]
    return weights + [each for group in thresholds for each in group if each is not None]


def to_row(network: QuantizedNetwork) -> F32:
    flat = [each.detach().reshape(-1) for each in parameters(network)]
    return torch.cat(flat).numpy().copy()


@torch.no_grad()
def to_network(model: Model, row: F32) -> QuantizedNetwork:
    network, begin = QuantizedNetwork(model.chain()), 0
    for each in parameters(network):
        values = torch.from_numpy(row[begin : begin + each.numel()].copy())
        each.copy_(values.reshape(each.shape))
        begin += each.numel()
    return network
