"""The innermost loops of kernels with weights: how they are unrolled."""

from __future__ import annotations


def unrolled(words: int, most: int) -> int:
    """Return how many of ``words`` one round of a loop takes so that rounds are fewest, where a
    round and what is left after the last are together at most ``most``."""
    if words <= most:
        return words
    fitting = (n for n in range(1, most + 1) if n + words % n <= most)
    return min(fitting, key=lambda n: (words // n, n))


def rounds(words: int, most: int) -> int:
    """Count the rounds of the loop over ``words``; 0: there is none."""
    found = words // unrolled(words, most)
    return found if found > 1 else 0
