"""The CRC of what is on a card with ``security=none``: that of firmware/security/crc32.h.

The polynomial is x^32 + x^9 + x^3 + x^2 + 1; words are little-endian, the last one is filled with
zeros. A sum is linear in its words, so that neighbours are joined in pairs, then pairs in fours, …
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

LOW = 1 << 9 | 1 << 3 | 1 << 2 | 1
"""Powers of x whose sum is x^32, as bits."""


def crc32(content: bytes, before: int = 0) -> int:
    """Continued from the sum ``before`` over ``content``; with that in front of its n words, the
    sum of words[i] * x^(32 * (n - 1 - i))."""
    padded = content.ljust(-(-len(content) // 4) * 4, b"\0")
    words = np.concatenate([np.array([before], np.uint32), np.frombuffer(padded, "<u4")])
    step = np.array([LOW], np.uint32)  # x^32, then its square, …
    while len(words) > 1:
        words = np.concatenate([np.zeros(len(words) % 2, np.uint32), words])
        words = _product(words[::2], int(step[0])) ^ words[1::2]
        step = _product(step, int(step[0]))
    return int(words[0])


def _product(sums: Words, factor: int) -> Words:
    found: Words = np.zeros_like(sums)
    for bit in range(31, -1, -1):
        found = found << np.uint32(1) ^ np.uint32(LOW) * (found >> np.uint32(31))
        if factor >> bit & 1:
            found = found ^ sums
    return found
