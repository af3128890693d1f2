"""The innermost loops of kernels with weights: how they are unrolled, and whose weights share a
half of a word."""

from __future__ import annotations

import numpy as np

from pipeline.graph.families import Weighted
from pipeline.graph.graph import Graph
from pipeline.graph.tensor import IntArray
from pipeline.kernels.quick import channel_sums, quick_end

PACKED_REACH = 1 << 23
"""A sum that is had as the upper 24 bits of another must be smaller."""


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


def can_pack(weights: IntArray, sums: IntArray) -> bool:
    """Check whether two channels' weights may share a half of a word, whichever channels they are.

    Args:
        weights: (channels, …); sums: (channels, 2), all that a channel's sum can reach.
    """
    return bool(weights.min(initial=0) > -128 and np.abs(sums).max() < PACKED_REACH)


def reach(op: Weighted, graph: Graph) -> IntArray:
    """(channels, 2): the least and greatest sum, 0 where it decides nothing."""
    sums, found = channel_sums(op, graph), quick_end(op, graph)
    if found is None:
        return sums
    decides = found.constants[:, :1] != 0
    return np.where(decides, sums + graph.constants[op.parameters[1]][:, None], 0)
