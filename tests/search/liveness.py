"""Live data while a layer runs in any order of its pixels, counted unit by unit."""

import numpy as np

from pipeline.graph.tensor import IntArray
from pipeline.search.chains.traversals import Peels, ranks
from pipeline.search.view.pixels import Layer, read_at


def freed(layer: Layer, peels: Peels) -> IntArray:
    """Input pixels that die with each output unit, and, as the first entry, those never read.

    Shape (outputs + 1,): entry n + 1 belongs to unit n.
    """
    last = read_at(layer.op, layer.operand, layer.tensors, ranks(*layer.outputs[:2], peels))
    return np.bincount(last.reshape(-1) + 1, minlength=layer.outputs.number + 1)


def peak_nibbles(layer: Layer, peels: Peels) -> int:
    """The most nibbles live at once when any output may lie in any free nibble, of any width.

    A unit reads all its inputs before it writes, so the inputs that die with unit n are free
    already when its outputs are stored: after unit n there are In - freed(0…n) + (n + 1) fout.
    """
    dead = np.cumsum(freed(layer, peels))[1:] * layer.inputs.each
    written = np.arange(1, layer.outputs.number + 1) * layer.outputs.each
    return layer.inputs.total + max(0, int((written - dead).max()))
