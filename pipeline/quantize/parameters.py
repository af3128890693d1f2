"""The names under which parameters and thresholds travel in ``weights.npz``."""

from __future__ import annotations

import numpy as np
import torch

from pipeline.artifacts import Arrays
from pipeline.errors import ThimbleError
from pipeline.models.network import Model, resized
from pipeline.quantize.simulated import QuantizedNetwork


def to_arrays(network: QuantizedNetwork) -> Arrays:
    """``<layer>.weight``, ``.bias`` and log2 thresholds ``.weight_log2``, ``.bias_log2``,
    ``.out_log2`` (not for logits), all float32."""
    arrays: Arrays = {}
    for name, layer in network.quantized.items():
        arrays[f"{name}.weight"] = layer.layer.weight.detach().numpy().copy()
        arrays[f"{name}.bias"] = layer.bias.detach().numpy().copy()
    thresholds = network.thresholds.items()
    return arrays | {name: value.detach().numpy().copy() for name, value in thresholds}


def from_arrays(model: Model, arrays: Arrays) -> QuantizedNetwork:
    """Return the network whose parameters ``arrays`` hold; its layers are as large as they are."""
    for name, values in arrays.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all() and "_log2" not in name:
            raise ThimbleError(f"{name} is not finite: training diverged, lower its rates")
    network = QuantizedNetwork(resized(model.chain(), arrays))
    for name, threshold in network.thresholds.items():
        value = arrays.get(name)
        if value is None or value.shape != () or not np.isfinite(value):
            raise ThimbleError(f"the weights lack the threshold {name}: run the train stage again")
        threshold.data.copy_(torch.from_numpy(value))
    return network
