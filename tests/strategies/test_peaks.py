"""Peaks of layers: closed forms, simulation, the best of all orders; appendix C against it."""

from itertools import product
from math import ceil, floor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.plan.vocabulary import Plan
from pipeline.search.chains.contiguous import needed_nibbles
from pipeline.search.chains.peeling import least
from pipeline.search.chains.traversals import Axis, columns, herringbone, peel, rows
from pipeline.search.view.pixels import Layer
from pipeline.strategies.in_place import Herringbone, InPlace, Replace
from tests.search.every_order import Unit, given_to, least_and_stored_first, units_of
from tests.search.every_order import peak as peak_of
from tests.strategies import closed_forms as forms
from tests.strategies.chains import IN_PLACE, Chain, board
from tests.strategies.peaks import Pixel, arena_nibbles, freed, orders_of, peak_nibbles, pmu_nibbles
from tests.strategies.proving import exact
from tests.tiers import quick

DEBTS = (forms.replace_debt, forms.single_transpose_debt, forms.herringbone_debt)
DEBT = dict(zip(IN_PLACE, DEBTS, strict=True))
Shape = tuple[int, int, int, int, int]
"""Output height and width, kernel, channels in and out."""

QUICK = settings(max_examples=60, derandomize=True, database=None)
MANY = settings(QUICK, max_examples=1000)
several = pytest.mark.parametrize("examples", quick(1, [QUICK, MANY], ci=0), ids=["", "many"])

shapes = st.tuples(
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([1, 3, 5]),
    st.integers(1, 12),
    st.integers(1, 16),
)


def one_layer(shape: Shape) -> Chain:
    h, w, k, fin, fout = shape
    return Chain((h + k - 1, w + k - 1, fin)).conv("y", fout, k)


def layer_of(chain: Chain) -> Layer:
    return Layer(chain.operators[0], chain.tensors)


def planned(strategy: InPlace, chain: Chain) -> Plan:
    return strategy.plan(chain.graph(), board(streams=False))


def simulated(chain: Chain, plan: Plan) -> int:
    """The peak of the order in which ``plan`` computes: a pixel with all its channels."""
    op, order = chain.operators[0], orders_of(plan, "y")
    units = units_of(op, chain.tensors)
    assert sorted(order) == sorted({unit.makes[1:3] for unit in units})

    def made(pixel: Pixel) -> Unit:
        mine = [unit for unit in units if unit.makes[1:3] == pixel]
        reads, nibbles = (unit.reads for unit in mine), sum(unit.nibbles for unit in mine)
        return Unit(frozenset().union(*reads), ("y", *pixel, 0), nibbles)

    return peak_of([made(pixel) for pixel in order], given_to(op, chain.tensors))


def best(chain: Chain) -> tuple[int, int]:
    """Return the least peaks of all orders: dying inputs freed before a write, and after it."""
    op = chain.operators[0]
    return least_and_stored_first(units_of(op, chain.tensors), given_to(op, chain.tensors))


@several
def test_contiguous_peak_is_the_closed_form(examples: settings) -> None:
    @examples
    @given(shapes)
    def check(shape: Shape) -> None:
        h, w, k, fin, _ = shape
        for strategy in IN_PLACE:
            plan = planned(strategy("contiguous"), one_layer(shape))
            expected = (h + k - 1) * (w + k - 1) * fin + DEBT[strategy](*shape)
            assert pmu_nibbles(plan) == expected == arena_nibbles(plan), strategy

    check()


def test_the_papers_eq_2_is_low_by_alpha() -> None:
    wrong = 0
    for shape in product(range(3, 12), range(3, 12), (3, 5), range(1, 8), range(2, 14)):
        h, w, k, fin, fout = shape
        if fout <= fin or forms.peels_that_cost(k, fin, fout) >= min(h, w):
            continue
        alpha = forms.remainder(k, fin, fout)
        difference = forms.herringbone_debt(*shape) - forms.printed_herringbone_debt(*shape)
        assert difference == alpha
        wrong += alpha > 0
    assert wrong > 1000


def test_the_papers_example() -> None:
    """12x12x5 -> 10x10x8: 720 nibbles of input."""
    debts = [*DEBT.values(), forms.printed_herringbone_debt]
    found = [(720 + debt(10, 10, 3, 5, 8)) / 2 for debt in debts]
    assert found == [467.5, 437.5, 434.5, 434]


@st.composite
def any_convolution(draw: st.DrawFn) -> Chain:
    """Any kernel, stride, dilation and padding, some of them depthwise."""
    small = st.integers(1, 3)
    kernel, stride = (draw(small), draw(small)), (draw(small), draw(small))
    dilation = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    padding = tuple(draw(st.integers(0, 2)) for _ in range(4))
    fin, fout = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    groups = 1
    if draw(st.booleans()):
        groups, fout = fin, fin * draw(st.integers(1, 2))
    extents = [
        max(1, (k - 1) * d + 1 - before - after) + draw(st.integers(0, 8))
        for k, d, before, after in zip(kernel, dilation, padding[::2], padding[1::2], strict=True)
    ]
    chain = Chain((extents[0], extents[1], fin))
    options = {"stride": stride, "dilation": dilation, "padding": padding}
    return chain.conv("y", fout, kernel, groups=groups, **options)


@several
def test_slot_peak_is_the_exact_liveness(examples: settings) -> None:
    @examples
    @given(shapes.map(one_layer), any_convolution())
    def check(plain: Chain, other: Chain) -> None:
        for strategy, chain in product(IN_PLACE, (plain, other)):
            plan = planned(strategy("slots"), chain)
            expected = simulated(chain, plan)
            assert pmu_nibbles(plan) <= arena_nibbles(plan) == expected, strategy
            assert chain is other or pmu_nibbles(plan) == expected, strategy

    check()


CHANNELS = ((1, 2), (2, 3), (3, 5), (5, 8), (4, 4), (5, 2), (1, 7))


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_herringbone_is_the_best_of_all_orders(kernel: int) -> None:
    for h, w in product(range(1, 5), range(1, 5)):
        for channels in CHANNELS:
            chain = one_layer((h, w, kernel, *channels))
            layer = layer_of(chain)
            peels = (herringbone if layer.peelable else rows)(h, w)
            found = peak_nibbles(layer, peels), needed_nibbles(layer, peels)
            assert found == best(chain), (h, w, channels)


SAME = {"padding": (1, 1, 1, 1)}


def test_by_columns_in_one_piece_too() -> None:
    """Contiguous: the input is transposed first; outputs are stored before inputs are given up."""
    chain = Chain((2, 4, 5)).conv("y", 5, **SAME)
    by_rows, found = (planned(kind("contiguous"), chain) for kind in (Replace, Herringbone))
    assert arena_nibbles(found) == 40 + 4 * 5 < arena_nibbles(by_rows)
    exact(found, chain.graph())


# --- the rules of appendix C: which have a sign wrong

KERNELS = [*product((1, 3, 4, 5), repeat=2)]
STRIDES = ((1, 1), (1, 2), (2, 1), (2, 2))
REACHING = [
    (kernel, stride)
    for kernel, stride in product(KERNELS, STRIDES)
    if kernel[0] >= stride[0] and kernel[1] >= stride[1]
]


def exactly(out: Pixel, kernel: Pixel, stride: Pixel, fin: int, fout: int) -> Layer:
    """Build a layer whose image's last row and column are read."""
    sides = ((n - 1) * s + k for n, s, k in zip(out, stride, kernel, strict=True))
    return layer_of(Chain((*sides, fin)).conv("y", fout, kernel, stride=stride))


def ruled(layer: Layer, x0: float) -> int:
    """The peak by C.1.1: so many rows, or columns where it is negative, then both in turn."""
    height, width = layer.outputs[:2]
    axis: Axis = "row" if x0 >= 0 else "column"
    side = height if axis == "row" else width
    first = [axis] * min(side, floor(x0) if x0 >= 0 else ceil(-x0))
    rest = (height - len(first), width) if axis == "row" else (height, width - len(first))
    axes = [*first, *(line.axis for line in herringbone(*rest))]
    return peak_nibbles(layer, peel(height, width, lambda top, left: axes[top + left]))


def test_the_debt_of_a_row_and_of_a_column() -> None:
    """Count the debt of one in the middle; eq. 21 as printed is never right."""
    wrong = 0
    for kernel, stride in REACHING:
        for x, fin, fout in ((4, 2, 9), (6, 3, 16)):
            across = kernel[::-1], stride[::-1]
            for size, sides in (((5, x), (kernel, stride)), ((x, 5), across)):
                layer = exactly(size, kernel, stride, fin, fout)
                dead = freed(layer, (rows if size[0] == 5 else columns)(*size))
                dead = dead[1:].reshape(5, x).sum(axis=1)[2]
                debt = x * fout - int(dead) * fin
                assert debt == forms.row_debt(x, *sides, fin, fout), (kernel, stride, size)
                wrong += debt != forms.printed_row_debt(x, *sides, fin, fout)
    assert wrong == 2 * 2 * len(REACHING)


def test_the_rule_goes_the_other_way_and_the_search_is_as_good() -> None:
    """Columns first where x0 is positive is never worse than rows first, which eq. 16 says."""
    better = 0
    for number, (kernel, stride) in enumerate(REACHING):
        for fin, more in ((2, 1), (3, 2), (2, 5)):
            fout = fin * stride[0] * stride[1] + more
            layer = exactly((9, 9), kernel, stride, fin, fout)
            printed = ruled(layer, forms.rows_first(kernel, stride, fin, fout, True))
            mended = ruled(layer, -forms.rows_first(kernel, stride, fin, fout))
            assert mended <= printed, (kernel, stride, fin, fout)
            better += mended < printed
        if number % 12 == 5:
            found = peak_nibbles(layer, least(layer))
            assert found <= min(printed, mended), (kernel, stride)
    assert better == 11
