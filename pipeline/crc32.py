"""The CRC of what is on a card with ``security=none``: that of firmware/security/crc32.h.

The polynomial is x^32 + x^9 + x^3 + x^2 + 1; words are little-endian, the last one is filled with
zeros. A sum is linear in its words, so that runs of them are summed side by side and joined.
"""

from __future__ import annotations

from math import isqrt

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

LOW = (0, 2, 3, 9)
"""Powers of x whose sum is x^32."""
FEW = 64
"""Words that are not worth being cut into runs."""


def crc32(content: bytes, before: int = 0) -> int:
    """Continued from the sum ``before`` over ``content``."""
    padded = content.ljust(-(-len(content) // 4) * 4, b"\0")
    words = np.concatenate([np.array([before], np.uint32), np.frombuffer(padded, "<u4")])
    return int(_sum(words))


def _sum(words: Words) -> np.uint32:
    """sum of words[i] * x^(32 * (n - 1 - i))."""
    count = isqrt(len(words)) if len(words) > FEW else 1
    length = -(-len(words) // count)
    filled = np.concatenate([np.zeros(count * length - len(words), np.uint32), words])
    sums = np.zeros(count, np.uint32)
    for column in filled.reshape(count, length).T:
        sums = _shifted(sums) ^ column
    if count == 1:
        return np.uint32(sums[0])
    step, total = _power(length), np.zeros(1, np.uint32)
    for each in sums:
        total = _product(total, step) ^ each
    return np.uint32(total[0])


def _shifted(sums: Words) -> Words:
    """sums * x^32."""
    above = sums >> np.uint32(23) ^ sums >> np.uint32(29) ^ sums >> np.uint32(30)
    found: Words = np.zeros_like(sums)
    for power in LOW:
        found ^= sums << np.uint32(power) ^ above << np.uint32(power)
    return found


def _power(words: int) -> int:
    """x^(32 * words)."""
    found = np.ones(1, np.uint32)
    for _ in range(words):
        found = _shifted(found)
    return int(found[0])


def _product(sums: Words, factor: int) -> Words:
    found: Words = np.zeros_like(sums)
    low = np.uint32(sum(1 << power for power in LOW))
    for bit in range(31, -1, -1):
        found = found << np.uint32(1) ^ low * (found >> np.uint32(31))
        if factor >> bit & 1:
            found = found ^ sums
    return found
