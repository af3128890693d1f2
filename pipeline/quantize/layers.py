"""Check that this format can hold a network."""

from __future__ import annotations

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.network import PixelPool, ResidualUnit

WEIGHTED = (nn.Conv2d, nn.Linear)
PLAIN = (nn.ReLU, nn.MaxPool2d, nn.Flatten, ResidualUnit)


def check_layers(network: nn.Sequential) -> None:
    """Raises ThimbleError at the first layer that has no integer counterpart."""
    names = [name for name, _ in network.named_children()]
    layers = list(network)
    if not layers or not isinstance(layers[0], PixelPool):
        raise ThimbleError("quantize: the network must start with a PixelPool of its image")
    weighted = [layer for layer in layers if isinstance(layer, WEIGHTED)]
    if not weighted or layers[-1] is not weighted[-1]:
        raise ThimbleError("quantize: the network must end with the layer that gives its logits")
    for index, (name, layer) in enumerate(zip(names, layers, strict=True)):
        if index == 0 or layer is layers[-1]:
            continue
        if not isinstance(layer, WEIGHTED + PLAIN):
            raise ThimbleError(
                f"quantize: {name} is a {type(layer).__name__}; Conv2d, Linear, ReLU, "
                "MaxPool2d, Flatten and ResidualUnit are supported"
            )
        if isinstance(layer, WEIGHTED) != isinstance(layers[index + 1], nn.ReLU):
            raise ThimbleError(
                f"quantize: after {name}: every Conv2d and Linear but the last must be followed by "
                "a ReLU, and no other layer may be"
            )
        _check_options(name, layer)


def _check_options(name: str, layer: nn.Module) -> None:
    if isinstance(layer, nn.Conv2d) and layer.padding_mode != "zeros":
        raise ThimbleError(f"quantize: {name} pads with {layer.padding_mode}, only zeros are known")
    if isinstance(layer, nn.MaxPool2d) and (layer.padding, layer.dilation, layer.ceil_mode) != (
        0,
        1,
        False,
    ):
        raise ThimbleError(f"quantize: {name} has padding, dilation or ceil_mode: leave them out")
