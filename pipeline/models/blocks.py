"""A network as a list of blocks in YAML: what architecture searches produce.

Each block is a mapping with ``kind`` and that kind's options, ``channels`` being its output's.
Options given once hold for all ``repeat`` layers of a block, lists give each layer its own; only
the first layer has the ``stride``. Example::

    - {kind: mbconv, channels: 24, expand: [3, 6, 6], kernel: [5, 7, 3], stride: 2, repeat: 3}

The classifier follows by itself: global average, then dense.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from pipeline.errors import ThimbleError
from pipeline.models.layers import InvertedResidual, classifier, convolution, separable
from pipeline.models.network import Model

Options = dict[str, Any]


def conv(c_in: int, options: Options, act: str) -> nn.Module:
    return convolution(c_in, options["channels"], options["kernel"], options["stride"], 1, act)


def separable_conv(c_in: int, options: Options, act: str) -> nn.Module:
    return separable(c_in, options["channels"], options["kernel"], options["stride"], act)


def mbconv(c_in: int, options: Options, act: str) -> nn.Module:
    squeezed = max(1, round(c_in * options["squeeze"])) if options["squeeze"] else 0
    shape = (options["channels"], options["kernel"], options["stride"])
    return InvertedResidual(c_in, *shape, options["expand"], act, squeezed)


def maxpool(c_in: int, options: Options, act: str) -> nn.Module:
    return nn.MaxPool2d(options["kernel"], options["stride"])


def avgpool(c_in: int, options: Options, act: str) -> nn.Module:
    return nn.AvgPool2d(options["kernel"], options["stride"])


LAYER: Options = {"channels": None, "kernel": 3, "stride": 1, "repeat": 1}
KINDS: dict[str, tuple[Callable[[int, Options, str], nn.Module], Options]] = {
    "conv": (conv, LAYER),
    "separable": (separable_conv, LAYER),
    "mbconv": (mbconv, LAYER | {"expand": 6, "squeeze": 0}),
    "maxpool": (maxpool, {"kernel": 2, "stride": 2}),
    "avgpool": (avgpool, {"kernel": 2, "stride": 2}),
}
"""Maker of a layer of each kind, and its options with their defaults; None has to be given.
``squeeze``: squeezed channels over the block's input channels, 0 for no squeeze-excitation."""

INTEGERS = ("channels", "kernel", "stride")


@dataclass(frozen=True)
class Blocks(Model):
    """A network as a list of blocks; ``activation`` follows every convolution but projections.

    Attributes:
        blocks: kind and options of each: docs/zoo.md, a list of blocks.
    """

    input_shape: tuple[int, int, int] = (96, 96, 3)
    classes: int = 2
    blocks: tuple[Mapping[str, Any], ...] = ()
    activation: str = "relu6"

    def build(self) -> nn.Sequential:
        if not self.blocks:
            raise ThimbleError("model.blocks is empty: see conf/model/blocks.yaml")
        height, width, channels = self.input_shape
        network = nn.Sequential()
        for index, block in enumerate(self.blocks):
            for options in layers(index, block):
                make, _ = KINDS[str(block["kind"])]
                network.add_module(f"layer{len(network)}", make(channels, options, self.activation))
                pools = "channels" not in options
                height, width = (smaller(s, options, pools) for s in (height, width))
                if min(height, width) < 1:
                    raise ThimbleError(
                        f"model.blocks[{index}]: nothing is left of the {block['kind']}'s input: "
                        "use larger images or fewer strides"
                    )
                channels = options.get("channels", channels)
        network.add_module("head", classifier(channels, self.classes))
        return network


def smaller(size: int, options: Options, pools: bool) -> int:
    """Pools take whole windows only, convolutions pad: ceil(size / stride)."""
    stride: int = options["stride"]
    return (size - options["kernel"]) // stride + 1 if pools else -(-size // stride)


def layers(index: int, block: Mapping[str, Any]) -> list[Options]:
    """Return the options of each layer of ``block``.

    Raises:
        ThimbleError: in one line, where and what is wrong.
    """
    where = f"model.blocks[{index}]"
    if not isinstance(block, Mapping) or block.get("kind") not in KINDS:
        raise ThimbleError(f"{where}: kind has to be one of {', '.join(KINDS)}, not {block!r}")
    defaults = KINDS[block["kind"]][1]
    if unknown := sorted(set(block) - {"kind", *defaults}):
        raise ThimbleError(
            f"{where}: {block['kind']} has no {unknown[0]!r}; it has {', '.join(defaults)}"
        )
    given = defaults | {key: value for key, value in block.items() if key != "kind"}
    repeat = given.pop("repeat", 1)
    if not isinstance(repeat, int) or repeat < 1:
        raise ThimbleError(f"{where}: repeat={repeat} has to be a whole number of at least 1")
    result = []
    for number in range(repeat):
        options = {key: one(where, key, value, number, repeat) for key, value in given.items()}
        result.append(options if number == 0 else options | {"stride": 1})
    return result


def one(where: str, key: str, value: Any, number: int, repeat: int) -> Any:
    """Return the value of an option for layer ``number`` of a block."""
    values = value if isinstance(value, tuple | list) else (value,) * repeat
    kind = int if key in INTEGERS else int | float
    least = 0 if key == "squeeze" else 1
    if len(values) != repeat or not all(isinstance(v, kind) and v >= least for v in values):
        raise ThimbleError(
            f"{where}: {key}={value} has to be a number of at least {least}, or a list of {repeat}"
        )
    return values[number]
