"""What random networks of one operator are made of."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Random = np.random.Generator
Case = Callable[[Random], bytes]


def scale(rng: Random, low: float = 0.002, high: float = 0.2) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def zero(rng: Random) -> int:
    return int(rng.integers(-128, 128)) if rng.random() < 0.9 else int(rng.choice([-128, 127, 0]))


def sizes(rng: Random, most: int = 9, channels: int = 8) -> tuple[int, int, int]:
    height, width, depth = rng.integers(1, [most, most, channels], endpoint=True)
    return int(height), int(width), int(depth)
