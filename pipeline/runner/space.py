"""Networks drawn at random from a described space, and varied: the overrides that make each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from pipeline.errors import ThimbleError

Words = list[str]
TRIES = 1_000
"""Draws for each network: more, and the space is held to be empty."""

TAKES = {
    "layers": "the least and the greatest number, from 1",
    "bits": "4, 8 or both",
    "depthwise": "a share, from 0 to 1",
    "pooled": "a share, from 0 to 1",
}


class Layer(NamedTuple):
    """A convolution; 0 channels: depthwise. ``pooled``: a 2x2 maximum follows."""

    channels: int
    kernel: int
    stride: int
    bits: int
    pooled: bool


@dataclass
class Space:
    """Search space of ``model=small_cnn``, as conf/sweep/architectures.yaml describes it. Each
    choice of a list is as likely as the others."""

    layers: list[int]
    channels: list[int]
    kernels: list[int]
    strides: list[int]
    depthwise: float
    pooled: float
    bits: list[int]
    input_pools: list[int]

    def __post_init__(self) -> None:
        for name, given in vars(self).items():
            if isinstance(given, float | int):
                fine = 0 <= given <= 1
            else:
                fine = bool(given) and min(given) >= 1
            fine &= name != "bits" or set(given) <= {4, 8}
            fine &= name != "layers" or (len(given) == 2 and given[0] <= given[1])
            if not fine:
                takes = TAKES.get(name, "whole numbers from 1, one at least")
                raise ThimbleError(f"hydra.sweeper.space.{name}={given}: {takes}")

    def networks(self, count: int, image: Sequence[int], seed: int) -> list[Words]:
        """Draw ``count`` networks for images of ``image``, (h, w, c): their overrides. The n-th is
        the same however many there are.

        Raises:
            ThimbleError: when there are fewer that leave anything of the image.
        """
        random = Random(seed)
        found = some(count, lambda: self._drawn(random, image))
        if len(found) < count:
            raise ThimbleError(
                f"hydra.sweeper.space: after {len(found)} networks no other is found that leaves "
                f"anything of images of {image[0]}x{image[1]}: ask for fewer "
                "(hydra.sweeper.networks), or widen the space"
            )
        return found

    def varied(self, network: Words, image: Sequence[int], random: Random) -> Words | None:
        """``network`` with one thing changed: the pool of its input, or of its convolutions one
        that comes, goes, or is another in one respect, which may be its own. None where nothing is
        left of the image, or what is left isn't of the space."""
        values = (word.removeprefix("model.").split("=") for word in network)
        pool, layers = _network({key: json.loads(value) for key, value in values})
        at = random.randrange(len(layers))
        fresh = self._layer(random, at)
        change = random.choice(("pool", "add", "remove", *Layer._fields))
        if change == "pool":
            pool = random.choice(self.input_pools)
        elif change == "add":
            layers.insert(at, fresh)
        elif change == "remove":
            del layers[at]
        else:
            layers[at] = layers[at]._replace(**{change: getattr(fresh, change)})
        if not self.layers[0] <= len(layers) <= self.layers[1] or not layers[0].channels:
            return None
        return _words(pool, layers, image)

    def _drawn(self, random: Random, image: Sequence[int]) -> Words | None:
        pool = random.choice(self.input_pools)
        layers = [self._layer(random, n) for n in range(random.randint(*self.layers))]
        return _words(pool, layers, image)

    def _layer(self, random: Random, number: int) -> Layer:
        apart = number > 0 and random.random() < self.depthwise
        channels = 0 if apart else random.choice(self.channels)
        kernel, stride, bits = map(random.choice, (self.kernels, self.strides, self.bits))
        return Layer(channels, kernel, stride, bits, random.random() < self.pooled)


def some(count: int, made: Callable[[], Words | None], known: Sequence[Words] = ()) -> list[Words]:
    """``count`` different networks that ``made`` makes and that aren't ``known``; fewer where it
    makes no others."""
    found: list[Words] = []
    for _ in range(count * TRIES):
        if len(found) < count and (each := made()) and each not in found and each not in known:
            found.append(each)
    return found


def described(model: Mapping[str, Any]) -> Words:
    """The overrides that make ``model``, the fields of a ``SmallCnn``, of ``model=small_cnn``.

    Raises:
        ThimbleError: where nothing is left of its images, or it is no ``SmallCnn``.
    """
    with suppress(KeyError, ValueError):
        if found := _words(*_network(model), model["input_shape"]):
            return found
    raise ThimbleError(
        f"hydra.sweeper.from_model=true: model={model.get('name')} cannot be varied: it takes "
        "model.convolutions that leave something of an image, as small_cnn and the records' "
        "networks have them, and model.bits for each or for none"
    )


def _words(pool: int, layers: Sequence[Layer], image: Sequence[int]) -> Words | None:
    """Return the overrides of a network; None where it leaves nothing of ``image``."""
    for side in image[:2]:
        left = side // pool
        for each in layers:
            left = ((left - each.kernel) // each.stride + 1) // (1 + each.pooled)
            if left < 1:
                return None
    values = {
        "input_pool": pool,
        "convolutions": [each[:3] for each in layers],
        "pooled": [n for n, each in enumerate(layers, 1) if each.pooled],
        "bits": [each.bits for each in layers],
    }
    return [
        f"model.{key}={json.dumps(each, separators=(',', ':'))}" for key, each in values.items()
    ]


def _network(model: Mapping[str, Any]) -> tuple[int, list[Layer]]:
    """Return the input pool and layers that ``SmallCnn``'s fields describe: undo ``_words``."""
    shapes = model["convolutions"]
    each = enumerate(zip(shapes, model.get("bits") or [4] * len(shapes), strict=True), 1)
    layers = [Layer._make((*shape, bits, n in model["pooled"])) for n, (shape, bits) in each]
    return model["input_pool"], layers
