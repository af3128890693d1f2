"""Models: any ``nn.Module`` from raw values (n, c, h, w) in 0…255 to outputs (n, classes).

The 4-bit format takes chains: an ``nn.Sequential`` of named layers that begins with a PixelPool.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from pipeline.artifacts import Arrays
from pipeline.axes import advice, times
from pipeline.errors import ThimbleError
from pipeline.frames import raw_only

Shape = tuple[int, int, int]
"""(h, w, c)"""


class PixelPool(nn.Module):
    """Average ``size`` x ``size`` pixels to 4 bits: floor(sum of u8 / (16 * size**2)) / 16.

    Exact: what the firmware does as the image arrives. (n, c, h, w) in 0…255 -> (n, c, h', w')
    in 0…15/16, real values with exponent -4.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        if size not in (1, 2, 4, 8):
            raise ThimbleError(f"model: an input pool of {size} is no power of two; use 1, 2, 4, 8")
        self.size = size

    def forward(self, pixels: Tensor) -> Tensor:
        total = nn.functional.avg_pool2d(pixels, self.size) * self.size**2
        return torch.floor(total / (16 * self.size**2)) / 16


class ByteConv2d(nn.Conv2d):
    """A convolution whose weights and outputs keep 8 bits in the 4-bit format."""


class ResidualUnit(nn.Module):
    """Two 3x3 convolutions without padding, and the middle of what went in added to what comes out:
    (n, c, h, w) -> (n, channels, h - 4, w - 4). Where ``channels`` are others than ``depth``, a 1x1
    convolution stands before the sum (He et al. 2016, eq. 2).
    """

    def __init__(self, depth: int, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(depth, channels, 3)
        self.second = nn.Conv2d(channels, channels, 3)
        self.matched = nn.Conv2d(depth, channels, 1) if channels != depth else None

    @staticmethod
    def middle(x: Tensor) -> Tensor:
        return x[..., 2:-2, 2:-2]

    def forward(self, x: Tensor) -> Tensor:
        kept = self.middle(x)
        if self.matched is not None:
            kept = self.matched(kept)
        return torch.relu(self.second(torch.relu(self.first(x))) + kept)


@dataclass(frozen=True)
class Model(ABC):
    """A network's shape as the config gives it.

    Attributes:
        input_shape: height, width, channels.
        classes: outputs.
        width: a factor on every layer's channels.
        activation: after each convolution: relu, relu6, silu, hardswish or tanh.
    """

    input_shape: Shape = (28, 28, 1)
    classes: int = 10

    def __post_init__(self) -> None:
        if len(self.input_shape) != 3 or min(self.input_shape) < 1:
            raise ThimbleError(
                f"model.input_shape={list(self.input_shape)} must be height, width and channels, "
                "such as [28,28,1]"
            )
        if self.classes < 1:
            raise ThimbleError(f"model.classes={self.classes} must be at least 1")

    @abstractmethod
    def build(self) -> nn.Module:
        """Return the network with fresh weights, from PyTorch's global generator."""

    @property
    def step(self) -> bool:
        """Say that a call is one step of a sequence, see ``Imported``."""
        return False

    @property
    def states(self) -> Sequence[str]:
        """Inputs that are results of the call before, see ``exported``."""
        return ()

    @property
    def takes(self) -> tuple[float, float]:
        """The real values that whoever uses it gives it for 0 and 255 of an image."""
        return 0.0, 255.0

    @property
    def trained(self) -> bool:
        """Check whether ``build`` gives the user's own weights, which nothing here may rescale."""
        return False

    def probe(self) -> None:  # noqa: B027 - most have nothing to ask
        """Raises ThimbleError when a later stage will refuse the network, whatever its weights:
        asked before training. Of the networks that are here, none does."""

    def chain(self) -> nn.Sequential:
        """``build()``, where that is a chain that the 4-bit format takes."""
        return self.as_chain(self.build())

    def as_chain(self, network: nn.Module) -> nn.Sequential:
        """``network``, which ``build`` made, as such a chain."""
        if is_chain(network):
            return network
        raise ThimbleError(
            f"model: {type(self).__name__} is no chain of layers that begins with a PixelPool, the "
            "only kind that quantize=int4 and its trainings take: use quantize=int8, train=random "
            "or float; or model=mnist_2kb"
        )

    def example(self, count: int = 1) -> Tensor:
        """Return an input of zeros, (count, c, h, w)."""
        height, width, channels = self.input_shape
        return torch.zeros(count, channels, height, width)

    @property
    def examples(self) -> Mapping[str, Tensor]:
        """Zeros for each input by its name."""
        return {"input": self.example()}

    widened: ClassVar[str] = "set model.classes={}"
    """Advice on how to get more outputs, whose number replaces ``{}``."""

    @property
    def gives(self) -> int:
        """Count the values that the network gives."""
        return self.classes

    def check(self, data: Arrays) -> None:
        """Raises ThimbleError when the images or labels of ``data`` do not fit the network.

        No images at all (``data=none``) fit every network.
        """
        if not len(data["train_images"]):
            return
        raw_only(data)
        shape = data["train_images"].shape[1:]
        if shape != tuple(self.input_shape):
            set_it = f"set model.input_shape=[{','.join(map(str, shape))}]"
            raise ThimbleError(
                f"the data set has images of {times(shape)}, the network takes "
                f"{times(self.input_shape)}: {advice(shape, self.input_shape) or set_it}"
            )
        highest = int(max(data[name].max() for name in data if name.endswith("_labels")))
        if highest >= (outputs := self.gives):
            raise ThimbleError(
                f"the data set has label {highest}, the network {outputs} outputs: "
                f"{self.widened.format(highest + 1)}"
            )


def is_chain(network: nn.Module) -> TypeGuard[nn.Sequential]:
    if not isinstance(network, nn.Sequential) or len(network) == 0:
        return False
    return isinstance(network[0], PixelPool)


def state_arrays(network: nn.Module) -> Arrays:
    """Return every parameter and running statistic by its name."""
    return {
        name: value.detach().contiguous().numpy().copy()
        for name, value in network.state_dict().items()
    }


def loaded(network: nn.Module, arrays: Arrays) -> nn.Module:
    """``network`` with the parameters and running statistics in ``arrays``; others stay unread.

    Raises:
        ThimbleError: for what is missing, has another shape, or is not finite.
    """
    state = {}
    for name, value in network.state_dict().items():
        if name not in arrays:
            raise ThimbleError(f"the weights lack {name!r}: they belong to another model")
        found = arrays[name]
        if found.shape != tuple(value.shape):
            raise ThimbleError(
                f"the weights of {name} have shape {found.shape}, the model's {tuple(value.shape)}"
            )
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ThimbleError(f"{name} is not finite: training diverged, lower its rates")
        state[name] = torch.from_numpy(np.array(found))
    network.load_state_dict(state)
    return network


def resized(network: nn.Sequential, arrays: Arrays) -> nn.Sequential:
    """``network`` with layers as large as the weights in ``arrays``, which are then loaded.

    A pruned network has fewer channels than its model says: its weights tell.
    """
    for name, layer in network.named_modules():
        if not isinstance(layer, (nn.Conv2d, nn.Linear)):
            continue
        try:
            weight, bias = (
                torch.from_numpy(arrays[f"{name}.{part}"].copy()) for part in ("weight", "bias")
            )
        except KeyError as error:
            raise ThimbleError(f"the weights lack {error}: they belong to another model") from None
        if weight.ndim != layer.weight.ndim or len(weight) != len(bias):
            raise ThimbleError(
                f"the weights of {name} have shape {tuple(weight.shape)}, "
                f"the model's {tuple(layer.weight.shape)}"
            )
        layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
        if isinstance(layer, nn.Conv2d):
            layer.out_channels, layer.in_channels = len(weight), weight.shape[1] * layer.groups
        else:
            layer.out_features, layer.in_features = weight.shape
    return network
