"""How much is live while a layer runs: exact, for any operator and any order."""

from __future__ import annotations

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.search.chains.layer import Layer


def freed(layer: Layer, rank: IntArray) -> IntArray:
    """Input pixels that die with each output unit, and, as the first entry, those never read.

    Shape (outputs + 1,): entry n + 1 belongs to unit n.
    """
    return np.bincount(layer.last_use(rank).reshape(-1) + 1, minlength=layer.outputs.number + 1)


def peak_nibbles(layer: Layer, rank: IntArray) -> int:
    """The most nibbles live at once when any output may lie in any free nibble.

    A unit reads all its inputs before it writes, so the inputs that die with unit n are free
    already when its outputs are stored: after unit n there are In - freed(0…n) + (n + 1) fout.
    The paper (section 3.2) frees them after the write; its peak is up to k fin higher.
    """
    dead = np.cumsum(freed(layer, rank))[1:] * layer.inputs.each
    written = np.arange(1, layer.outputs.number + 1) * layer.outputs.each
    return layer.inputs.total + max(0, int((written - dead).max()))
