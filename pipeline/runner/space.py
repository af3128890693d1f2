"""Networks drawn at random from a described space: the overrides that make each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from pipeline.errors import ThimbleError

TRIES = 1_000
"""Draws in a row that may come to nothing: more, and the space is held to be empty."""


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
        for name in ("channels", "kernels", "strides", "bits", "input_pools"):
            if not getattr(self, name):
                raise ThimbleError(f"hydra.sweeper.space.{name} is empty: give a choice at least")
        if len(self.layers) != 2 or not 1 <= self.layers[0] <= self.layers[1]:
            raise ThimbleError(
                f"hydra.sweeper.space.layers={list(self.layers)}: the least and the greatest number"
            )

    def networks(self, image: Sequence[int], seed: int) -> Iterator[list[str]]:
        """Without end, each once: overrides for images of ``image``, (h, w, c). The n-th is the
        same however many are taken.

        Raises:
            ThimbleError: when no more are found that leave anything of the image.
        """
        random, known = Random(seed), set[tuple[str, ...]]()
        while True:
            for _ in range(TRIES):
                found = self._drawn(random, image)
                if found and tuple(found) not in known:
                    break
            else:
                raise ThimbleError(
                    f"hydra.sweeper.space: after {len(known)} networks no other is found that "
                    f"leaves anything of images of {image[0]}x{image[1]}: ask for fewer "
                    "(hydra.sweeper.networks), or widen the space"
                )
            known.add(tuple(found))
            yield found

    def _drawn(self, random: Random, image: Sequence[int]) -> list[str] | None:
        """None where nothing is left of the image."""
        pool = random.choice(self.input_pools)
        sides = [side // pool for side in image[:2]]
        convolutions, pooled, bits = [], [], []
        for number in range(1, random.randint(*self.layers) + 1):
            kernel, stride = random.choice(self.kernels), random.choice(self.strides)
            apart = number > 1 and random.random() < self.depthwise
            channels = random.choice(self.channels)
            convolutions.append([0 if apart else channels, kernel, stride])
            bits.append(random.choice(self.bits))
            sides = [(side - kernel) // stride + 1 for side in sides]
            if random.random() < self.pooled:
                pooled.append(number)
                sides = [side // 2 for side in sides]
            if min(sides) < 1:
                return None
        values = {"input_pool": pool, "convolutions": convolutions, "pooled": pooled, "bits": bits}
        return [f"model.{key}={_text(value)}" for key, value in values.items()]


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
