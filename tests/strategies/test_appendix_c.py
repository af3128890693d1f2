"""The rules of the paper's appendix C against what is live: which have a sign wrong."""

from __future__ import annotations

from itertools import product
from math import ceil, floor

import pytest

from pipeline.search.chains.layer import Layer
from pipeline.search.chains.least import least
from pipeline.search.chains.liveness import freed, peak_nibbles
from pipeline.search.chains.traversals import Axis, Peels, herringbone, peel, ranks
from tests.strategies import closed_forms as forms
from tests.strategies.chains import Chain
from tests.tiers import quick

Pair = tuple[int, int]


def layer_of(size: Pair, kernel: Pair, stride: Pair, fin: int, fout: int) -> Layer:
    chain = Chain((*size, fin)).conv("y", fout, kernel, stride=stride)
    return Layer(chain.operators[0], chain.tensors)


def exactly(out: Pair, kernel: Pair, stride: Pair, fin: int, fout: int) -> Layer:
    """Of an image whose last row and column are read."""
    height, width = ((n - 1) * s + k for n, s, k in zip(out, stride, kernel, strict=True))
    return layer_of((height, width), kernel, stride, fin, fout)


def ruled(layer: Layer, x0: float) -> Peels:
    """C.1.1: so many rows, or columns where it is negative, then rows and columns in turn."""
    height, width = layer.outputs[:2]
    axis: Axis = "row" if x0 >= 0 else "column"
    side = height if axis == "row" else width
    first = [axis] * min(side, floor(x0) if x0 >= 0 else ceil(-x0))
    rest = (height - len(first), width) if axis == "row" else (height, width - len(first))
    return peel(height, width, [*first, *(line.axis for line in herringbone(*rest))])


def peak(layer: Layer, peels: Peels) -> int:
    return peak_nibbles(layer, ranks(*layer.outputs[:2], peels))


KERNELS = tuple(product((1, 3, 4, 5), repeat=2))
STRIDES = ((1, 1), (1, 2), (2, 1), (2, 2))


def test_the_debt_of_a_row_and_of_a_column() -> None:
    """Of one in the middle, counted; eq. 21 as printed is never right."""
    wrong = counted = 0
    for kernel, stride in product(KERNELS, STRIDES):
        if kernel[0] < stride[0] or kernel[1] < stride[1]:
            continue
        for x, fin, fout in ((4, 2, 9), (6, 3, 16)):
            across = kernel[::-1], stride[::-1]
            for size, sides in (((5, x), (kernel, stride)), ((x, 5), across)):
                layer = exactly(size, kernel, stride, fin, fout)
                axes: list[Axis] = ["row"] * 5 if size[0] == 5 else ["column"] * 5
                order = ranks(*size, peel(*size, axes))
                dead = freed(layer, order)[1:].reshape(5, x).sum(axis=1)[2]
                debt = x * fout - int(dead) * fin
                assert debt == forms.row_debt(x, *sides, fin, fout), (kernel, stride, size)
                wrong += debt != forms.printed_row_debt(x, *sides, fin, fout)
        counted += 1
    assert wrong == 2 * 2 * counted


def test_the_rule_goes_the_other_way() -> None:
    """Columns first where x0 is positive is never worse than rows first, which eq. 16 says."""
    better = 0
    for kernel, stride in product(KERNELS, STRIDES):
        if kernel[0] < stride[0] or kernel[1] < stride[1]:
            continue
        for fin, more in ((2, 1), (3, 2), (2, 5)):
            fout = fin * stride[0] * stride[1] + more
            layer = exactly((9, 9), kernel, stride, fin, fout)
            printed = peak(layer, ruled(layer, forms.rows_first(kernel, stride, fin, fout, True)))
            mended = peak(layer, ruled(layer, -forms.rows_first(kernel, stride, fin, fout)))
            assert mended <= printed, (kernel, stride, fin, fout)
            better += mended < printed
    assert better == 11


@pytest.mark.parametrize(
    ("kernel", "stride", "fin", "fout"),
    quick(1, [((5, 3), (1, 1), 5, 8), ((1, 5), (1, 1), 3, 5), ((3, 3), (2, 1), 2, 9)], ci=0),
)
def test_the_search_is_as_good_as_any_rule(kernel: Pair, stride: Pair, fin: int, fout: int) -> None:
    layer = exactly((9, 9), kernel, stride, fin, fout)
    rules = [ruled(layer, sign * forms.rows_first(kernel, stride, fin, fout)) for sign in (1, -1)]
    assert peak(layer, least(layer)) <= min(peak(layer, order) for order in rules)
