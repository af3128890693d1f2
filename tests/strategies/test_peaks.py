"""Peaks of single layers: closed forms, an independent simulation, and brute force."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.plan.vocabulary import Plan
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.liveness import peak_nibbles
from pipeline.search.chains.traversals import ranks
from pipeline.search.chains.two_ends import needed_nibbles
from pipeline.strategies.chain import ChainStrategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.replace import Replace
from pipeline.strategies.single_transpose import SingleTranspose
from tests.strategies import closed_forms as forms
from tests.strategies.chains import Chain, board
from tests.strategies.peaks import (
    arena_nibbles,
    best_of_all_orders,
    orders_of,
    pmu_nibbles,
    simulate,
    window,
)
from tests.tiers import quick

IN_PLACE: tuple[type[ChainStrategy], ...] = (Replace, SingleTranspose, Herringbone)
DEBT = dict(
    zip(
        IN_PLACE,
        (forms.replace_debt, forms.single_transpose_debt, forms.herringbone_debt),
        strict=True,
    )
)
Shape = tuple[int, int, int, int, int]
"""Output height and width, kernel, channels in and out."""

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
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


def planned(strategy: ChainStrategy, chain: Chain) -> Plan:
    return strategy.plan(chain.graph(), board(streams=False))


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


@pytest.mark.ci
def test_closed_forms_on_a_grid() -> None:
    """Every small shape, without making the plans."""
    count = 0
    for shape in product(range(1, 6), range(1, 6), (1, 3, 5), (1, 2, 5), (1, 2, 4, 13)):
        h, w, k, fin, _ = shape
        chain = one_layer(shape)
        layer = Layer(chain.operators[0], chain.tensors)
        for strategy in IN_PLACE:
            found = needed_nibbles(layer, strategy("contiguous").traversal(layer))
            assert found == (h + k - 1) * (w + k - 1) * fin + DEBT[strategy](*shape), strategy
            count += 1
    assert count == 2700


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
    shape = (10, 10, 3, 5, 8)
    assert 720 + forms.replace_debt(*shape) == 2 * 467.5
    assert 720 + forms.single_transpose_debt(*shape) == 2 * 437.5
    assert 720 + forms.herringbone_debt(*shape) == 2 * 434.5
    assert 720 + forms.printed_herringbone_debt(*shape) == 2 * 434


@several
def test_slot_peak_is_the_exact_liveness(examples: settings) -> None:
    @examples
    @given(shapes)
    def check(shape: Shape) -> None:
        h, w, k, fin, fout = shape
        size = (h + k - 1, w + k - 1)
        for strategy in IN_PLACE:
            plan = planned(strategy("slots"), one_layer(shape))
            order = orders_of(plan, "y")
            assert sorted(order) == list(product(range(h), range(w)))
            reads = [window(p, (k, k), (1, 1), (0, 0), (1, 1), size) for p in order]
            expected = simulate(reads, size[0] * size[1], fin, fout)
            assert pmu_nibbles(plan) == expected == arena_nibbles(plan), strategy

    check()


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
def test_slot_peak_of_any_convolution_is_the_exact_liveness(examples: settings) -> None:
    @examples
    @given(any_convolution())
    def check(chain: Chain) -> None:
        op, (h, w, fin) = chain.operators[0], chain.tensors["image"].shape
        assert isinstance(op, Conv2d)
        kernel = chain.tensors["y.weight"].shape[1:3]
        fout = chain.tensors["y"].shape[2]
        for strategy in IN_PLACE:
            plan = planned(strategy("slots"), chain)
            reads = [
                window(p, kernel, op.stride, op.padding[::2], op.dilation, (h, w))  # type: ignore[arg-type]
                for p in orders_of(plan, "y")
            ]
            expected = simulate(reads, h * w, fin, fout)
            assert pmu_nibbles(plan) <= arena_nibbles(plan) == expected, strategy

    check()


def best_without_padding(h: int, w: int, k: int, fin: int, fout: int) -> tuple[int, int]:
    size = h + k - 1, w + k - 1
    outputs = product(range(h), range(w))
    reads = [window(p, (k, k), (1, 1), (0, 0), (1, 1), size) for p in outputs]
    return best_of_all_orders(reads, size[0] * size[1], fin, fout)


CHANNELS = ((1, 2), (2, 3), (3, 5), (5, 8), (4, 4), (5, 2), (1, 7))


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_herringbone_is_the_best_of_all_orders(kernel: int) -> None:
    for h, w in product(range(1, 5), range(1, 5)):
        for channels in CHANNELS:
            chain = one_layer((h, w, kernel, *channels))
            layer = Layer(chain.operators[0], chain.tensors)
            peels = Herringbone().traversal(layer)
            after, before = best_without_padding(h, w, kernel, *channels)
            assert peak_nibbles(layer, ranks(h, w, peels)) == after, (h, w, channels)
            assert needed_nibbles(layer, peels) == before, (h, w, channels)


def test_brute_force_finds_row_major_worse() -> None:
    """The comparison above can fail."""
    for channels in ((1, 2), (3, 5), (5, 8)):
        chain = one_layer((4, 4, 3, *channels))
        layer = Layer(chain.operators[0], chain.tensors)
        after, before = best_without_padding(4, 4, 3, *channels)
        peels = Replace().traversal(layer)
        assert peak_nibbles(layer, ranks(4, 4, peels)) > after
        assert needed_nibbles(layer, peels) > before
