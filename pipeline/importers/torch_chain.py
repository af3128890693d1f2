"""A user's PyTorch network as the chain of layers that the 4-bit format takes, with its weights.

``forward`` is traced once: modules and the functions that do the same, one after the other. An
average pool at its beginning becomes the pool in which pixels arrive; without one, each pixel
arrives by itself, with 4 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx, nn

from pipeline.errors import ThimbleError, said
from pipeline.models.network import PixelPool

TAKEN = (nn.Conv2d, nn.Linear, nn.ReLU, nn.MaxPool2d, nn.Flatten)
PASSED = (nn.Dropout, nn.Dropout2d, nn.Identity)
"""Layers that do nothing once a network is trained."""

HINT = "Conv2d, Linear, ReLU, MaxPool2d, Flatten, and AvgPool2d first, one after the other"


FUNCTIONS: dict[Any, Callable[..., nn.Module]] = {
    torch.relu: lambda x: nn.ReLU(),
    nn.functional.relu: lambda x, inplace=False: nn.ReLU(),
    torch.flatten: lambda x, *axes, **named: nn.Flatten(*axes, **named),
    nn.functional.max_pool2d: lambda x, *sizes, **named: nn.MaxPool2d(*sizes, **named),
    nn.functional.avg_pool2d: lambda x, *sizes, **named: nn.AvgPool2d(*sizes, **named),
}
METHODS: dict[str, Callable[..., nn.Module]] = {
    "relu": lambda x: nn.ReLU(),
    "flatten": lambda x, *axes, **named: nn.Flatten(*axes, **named),
}


def chain(name: str, network: nn.Module, limits: tuple[float, float]) -> nn.Sequential:
    """
    Args:
        name: for messages.
        network: from real values (n, c, h, w) to outputs (n, classes).
        limits: what it takes for the raw values 0 and 255.

    Raises:
        ThimbleError: for another range than from 0 on, a network that cannot be traced, one that
            is no chain, or a layer that the format has not.
    """
    low, high = limits
    if low:
        raise ThimbleError(
            f"model.input_range=[{low:g},{high:g}]: 4-bit networks take pixels from 0 on; use "
            f"quantize=int8, or train it for [0,{high:g}]"
        )
    layers = list(_layers(name, network))
    size = 1
    if layers and isinstance(layers[0][1], nn.AvgPool2d):
        size = _size(name, layers.pop(0)[1])
    result = nn.Sequential()
    result.add_module("pool", PixelPool(size))
    for place, layer in layers:
        if not isinstance(layer, TAKEN):
            raise ThimbleError(
                f"{name}: {place} is a {type(layer).__name__}, which quantize=int4 does not have: "
                f"{HINT}; or use quantize=int8"
            )
        plain = place.replace(".", "_")
        result.add_module(f"{plain}_" if plain == "pool" else plain, layer)
    if high != 1:
        _rescaled(result, high)
    return result


def _layers(name: str, network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield each step of ``forward`` as a module, and where it is in the network."""
    try:
        graph = fx.Tracer().trace(network)
    except Exception as error:  # the user's forward may do anything
        raise ThimbleError(
            f"{name}: quantize=int4 cannot trace it ({said(error)}): {HINT}; or use quantize=int8"
        ) from None
    before: fx.Node | None = None
    for node in graph.nodes:
        if node.op == "output":
            return
        if node.op == "placeholder" and before is None:
            before = node
            continue
        if node.all_input_nodes != [before] or before is None or len(before.users) != 1:
            raise ThimbleError(f"{name}: {node.name} makes it no chain of layers: {HINT}")
        before = node
        layer = _module(name, network, node)
        if not isinstance(layer, PASSED):
            yield (str(node.target) if node.op == "call_module" else node.name), layer


def _module(name: str, network: nn.Module, node: fx.Node) -> nn.Module:
    if node.op == "call_module":
        return network.get_submodule(str(node.target))
    known: Callable[..., nn.Module] | None = None
    if node.op == "call_function":
        known = FUNCTIONS.get(node.target)
    elif node.op == "call_method":
        known = METHODS.get(str(node.target))
    if known is None:
        said = getattr(node.target, "__name__", node.target)
        raise ThimbleError(
            f"{name}: {said} is not supported by quantize=int4: {HINT}; or use quantize=int8"
        )
    return known(*node.args, **node.kwargs)


def _size(name: str, pool: nn.Module) -> int:
    assert isinstance(pool, nn.AvgPool2d)
    size = pool.kernel_size
    plain = pool.padding in (0, (0, 0)) and not pool.ceil_mode
    if not isinstance(size, int) or pool.stride != size or not plain:
        raise ThimbleError(
            f"{name}: the average pool that pixels arrive in is a square with a stride like it, "
            f"without padding; it is {pool}"
        )
    return size


@torch.no_grad()
def _rescaled(network: nn.Sequential, high: float) -> None:
    """Pixels arrive as 0…1, the network takes 0…``high``: the first weights make up for it."""
    first = next((layer for layer in network if isinstance(layer, (nn.Conv2d, nn.Linear))), None)
    if first is not None:
        first.weight *= high
