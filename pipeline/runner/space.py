"""Networks drawn at random from a described space, and varied: the overrides that make each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from pipeline.errors import ThimbleError

Words = list[str] | None
TRIES = 1_000
"""Draws in a row that may come to nothing: more, and the space is held to be empty."""


class Layer(NamedTuple):
    """A convolution; 0 channels: depthwise. ``pooled``: a 2x2 maximum follows."""

    channels: int
    kernel: int
    stride: int
    bits: int
    pooled: bool


@dataclass(frozen=True)
class Space:
    """Of ``model=small_cnn``. Each choice of a list is as likely as the others.

    Attributes:
        layers: the least and the greatest number of convolutions.
        channels, kernels, strides: of a convolution.
        depthwise: share of the convolutions, but the first, that are depthwise.
        pooled: share of the convolutions that a 2x2 maximum follows.
        bits: 4 or 8, of a convolution's weights and outputs.
        input_pools: pixels of the image that become one, along each side; 1 takes them as they are.
    """

    layers: Sequence[int]
    channels: Sequence[int]
    kernels: Sequence[int]
    strides: Sequence[int]
    depthwise: float
    pooled: float
    bits: Sequence[int]
    input_pools: Sequence[int]

    def __post_init__(self) -> None:
        for name, given in vars(self).items():
            said = ""
            if name in ("depthwise", "pooled"):
                fine = isinstance(given, int | float) and 0 <= given <= 1
                said = "" if fine else f"={given}: a share, from 0 to 1"
            elif not given:
                said = " is empty: give a choice at least"
            elif not all(isinstance(each, int) and each >= 1 for each in given):
                said = f"={list(given)}: whole numbers from 1"
            elif name == "bits" and set(given) - {4, 8}:
                said = f"={list(given)}: of 4 and 8"
            elif name == "layers" and (len(given) != 2 or given[0] > given[1]):
                said = f"={list(given)}: the least and the greatest number"
            if said:
                raise ThimbleError(f"hydra.sweeper.space.{name}{said}")

    def networks(self, image: Sequence[int], seed: int) -> Iterator[list[str]]:
        """Without end, each once: overrides for images of ``image``, (h, w, c). The n-th is the
        same however many are taken.

        Raises:
            ThimbleError: when no more are found that leave anything of the image.
        """
        random, known = Random(seed), set[tuple[str, ...]]()
        while found := another(lambda: self._drawn(random, image), known):
            yield found
        raise ThimbleError(
            f"hydra.sweeper.space: after {len(known)} networks no other is found that leaves "
            f"anything of images of {image[0]}x{image[1]}: ask for fewer (hydra.sweeper.networks), "
            "or widen the space"
        )

    def varied(self, network: Sequence[str], image: Sequence[int], random: Random) -> Words:
        """``network`` with one thing changed: the pool of its input, or of its convolutions one
        that comes, goes, or is another in one respect, which may be its own. None where nothing is
        left of the image, or what is left isn't of the space."""
        pool, layers = _network(*(json.loads(word.partition("=")[2]) for word in network))
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

    def _drawn(self, random: Random, image: Sequence[int]) -> Words:
        pool = random.choice(self.input_pools)
        layers = [self._layer(random, n) for n in range(random.randint(*self.layers))]
        return _words(pool, layers, image)

    def _layer(self, random: Random, number: int) -> Layer:
        apart = number > 0 and random.random() < self.depthwise
        return Layer(
            channels=0 if apart else random.choice(self.channels),
            kernel=random.choice(self.kernels),
            stride=random.choice(self.strides),
            bits=random.choice(self.bits),
            pooled=random.random() < self.pooled,
        )


def described(model: Mapping[str, Any]) -> list[str]:
    """The overrides that make ``model``, the fields of a ``SmallCnn``, of ``model=small_cnn``.

    Raises:
        ThimbleError: where nothing is left of its images, or it is no ``SmallCnn``.
    """
    if (shapes := model.get("convolutions")) is None:
        raise ThimbleError(
            f"hydra.sweeper.from_model=true: model={model.get('name')} has no model.convolutions "
            "to vary; small_cnn and the records' networks have"
        )
    bits = model.get("bits") or [4] * len(shapes)
    if len(bits) != len(shapes):
        raise ThimbleError(
            f"model.bits={list(bits)}: 4 or 8 for each of {len(shapes)} convolutions"
        )
    network = _network(model["input_pool"], shapes, model["pooled"], bits)
    if found := _words(*network, model["input_shape"]):
        return found
    raise ThimbleError("hydra.sweeper.from_model=true: model= leaves nothing of an image")


def another(made: Callable[[], Words], known: set[tuple[str, ...]]) -> Words:
    """A network that ``made`` makes and that isn't ``known``, from now on it is; None where it
    makes none."""
    for _ in range(TRIES):
        if (found := made()) and tuple(found) not in known:
            known.add(tuple(found))
            return found
    return None


def _words(pool: int, layers: Sequence[Layer], image: Sequence[int]) -> Words:
    """The overrides of a network; None where it leaves nothing of ``image``."""
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
        f"model.{key}={json.dumps(value, separators=(',', ':'))}" for key, value in values.items()
    ]


def _network(
    pool: int, shapes: Sequence[Sequence[int]], pooled: Sequence[int], bits: Sequence[int]
) -> tuple[int, list[Layer]]:
    """What ``_words`` says, of these values of ``SmallCnn``'s fields."""
    each = enumerate(zip(shapes, bits, strict=True), 1)
    return pool, [Layer(shape[0], shape[1], shape[2], b, n in pooled) for n, (shape, b) in each]
