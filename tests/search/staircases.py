"""The least peak of a layer over all staircases: orders in which each output comes after the one
above it and the one before it, seen from any of the four corners. Of 8 × 8 outputs there are 12,870
sets of outputs that such an order can have made, of all orders' 2^64.

``python -m tests.search.staircases``: random layers of 16 to 64 outputs, too many to try all orders
of. ``KIND …``: only these kinds of ``in_place``; ``--cases N`` of each, 150. ``above``: planned
with more than the best staircase, at most by how much; ``below``; ``rows``: with more than in
row-major order, of which there are none. Ends with 1 where there are, or some above of ``SURE``.
"""

from itertools import product

import numpy as np

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.tensor import IntArray
from pipeline.search.chains.peeling import least
from pipeline.search.chains.traversals import rows
from pipeline.search.view.pixels import Layer
from tests.search.every_order import units_of
from tests.search.in_place import Judged, compare, several
from tests.strategies.chains import Chain
from tests.strategies.peaks import peak_nibbles

SURE = ("square", "non-square kernels", "unequal strides", "1x1")
KINDS = (*SURE, "same padding", "same padding, strides", "dilation", "anything")
MOST_SIDE, FEWEST = 8, 16
"""Outputs: along a side, and in all; of fewer all orders are tried by ``in_place``."""


def best_staircase(chain: Chain) -> int:
    """Nibbles; of a layer that reads all channels of its input."""
    (op,), tensors = chain.operators, chain.tensors
    source, target = (tensors[name].shape for name in (op.inputs[0], op.output))
    reads = np.zeros((*target[:2], *source[:2]), dtype=bool)
    for unit in units_of(op, tensors):
        for _, row, column, _ in unit.reads:
            reads[*unit.makes[1:3], row, column] = True
    by_row, by_column = reads.any(axis=(1, 3)), reads.any(axis=(0, 2))
    each = [tensors[name].shape[2] * tensors[name].dtype.bits // 4 for name in (op.inputs[0], "y")]
    corners = product((by_row, by_row[::-1]), (by_column, by_column[::-1]))
    return max(
        source[0] * source[1] * each[0],
        min(_from_corner(rows_read, columns_read, *each) for rows_read, columns_read in corners),
    )


def _from_corner(by_row: IntArray, by_column: IntArray, fin: int, fout: int) -> int:
    """By dynamic programming over how many outputs of each row are made, no more than of the row
    above."""
    height, width = len(by_row), len(by_column)
    sets = [(n,) for n in range(width + 1)]
    for _ in range(height - 1):
        sets = [(*made, n) for made in sets for n in range(made[-1] + 1)]
    made = np.array(sets)
    # an input is there as long as a row that reads it has an output to make that reads its column
    left = np.array([by_column[n:].any(axis=0).sum() for n in range(width + 1)])
    live = made.sum(axis=1) * fout
    for readers in by_row.T:
        if readers.any():
            live += fin * left[made[:, readers].min(axis=1)]
    best = dict(zip(sets, live.tolist(), strict=True))
    best[sets[0]] = 0
    for each in sorted(sets[1:], key=sum):
        before = (
            best[(*each[:n], each[n] - 1, *each[n + 1 :])]
            for n in range(height)
            if each[n] > (each[n + 1] if n + 1 < height else 0)
        )
        best[each] = max(best[each], min(before))
    return int(best[sets[-1]])


def drawn(kind: str, number: int) -> Chain:
    """A layer of too many outputs to try all orders of."""
    for chain in several(kind, number):
        height, width = chain.tensors["y"].shape[:2]
        if height * width >= FEWEST and max(height, width) <= MOST_SIDE:
            return chain
    raise AssertionError


def judged(kind: str, number: int) -> Judged:
    """Against the best staircase."""
    chain = drawn(kind, number)
    op = chain.operators[0]
    assert isinstance(op, Conv2d)
    layer = Layer(op, chain.tensors)
    ways = least(layer), rows(*layer.outputs[:2])
    found, by_rows = (peak_nibbles(layer, peels) for peels in ways)
    return Judged(found, best_staircase(chain), by_rows)


if __name__ == "__main__":
    compare(judged, KINDS, 150, SURE)
