"""Herringbone beyond the restricted case: the best of all orders."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings

from pipeline.graph.operators.conv2d import Conv2d
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.search.chains.layer import Layer
from pipeline.search.chains.liveness import peak_nibbles
from pipeline.search.chains.traversals import Peels, columns, ranks, rows
from pipeline.strategies.base import LAYOUTS
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.replace import Replace
from tests.comparing import equal
from tests.strategies.chains import Chain, board
from tests.strategies.peaks import (
    Pixel,
    arena_nibbles,
    best_of_all_orders,
    orders_of,
    pmu_nibbles,
    simulate,
    window,
)
from tests.strategies.test_plans import chains

Padding = tuple[int, int, int, int]
"""Top, bottom, left, right."""

SAME: Padding = (1, 1, 1, 1)


def padded(
    height: int, width: int, fin: int, fout: int, padding: Padding = SAME, stride: Pixel = (1, 1),
    kernel: Pixel = (3, 3),
) -> Chain:  # fmt: skip
    options = {"padding": padding, "stride": stride}
    return Chain((height, width, fin)).conv("y", fout, kernel, **options)


def reads_of(chain: Chain, order: list[Pixel]) -> list[set[Pixel]]:
    op, size = chain.operators[0], chain.tensors["image"].shape[:2]
    assert isinstance(op, Conv2d)
    kernel = chain.tensors["y.weight"].shape[1:3]
    return [
        window(p, kernel, op.stride, op.padding[::2], op.dilation, size)  # type: ignore[arg-type]
        for p in order
    ]


def best(chain: Chain) -> int:
    """Of all orders of the outputs."""
    (height, width, fin), (h, w, fout) = (chain.tensors[n].shape for n in ("image", "y"))
    reads = reads_of(chain, list(product(range(h), range(w))))
    return best_of_all_orders(reads, height * width, fin, fout)[0]


def peak(chain: Chain, peels: Peels) -> int:
    layer = Layer(chain.operators[0], chain.tensors)
    return peak_nibbles(layer, ranks(*layer.outputs[:2], peels))


@pytest.mark.parametrize(
    ("shape", "by_rows", "by_columns"), [((2, 4, 5, 5), 65, 55), ((10, 49, 4, 4), 2160, 2004)]
)
def test_wide_maps_with_same_padding_go_by_columns(
    shape: tuple[int, int, int, int], by_rows: int, by_columns: int
) -> None:
    height, width, fin, fout = shape
    chain = padded(*shape)
    for strategy, expected in ((Replace(), by_rows), (Herringbone(), by_columns)):
        plan = strategy.plan(chain.graph(), board(streams=False))
        assert pmu_nibbles(plan) == arena_nibbles(plan) == expected
        reads = reads_of(chain, orders_of(plan, "y"))
        assert simulate(reads, height * width, fin, fout) == expected


def test_the_small_one_is_the_best_of_all_orders() -> None:
    assert best(padded(2, 4, 5, 5)) == 55


def test_by_columns_in_one_piece_too() -> None:
    """Contiguous: the input is transposed first; outputs are stored before inputs are given up."""
    chain = padded(2, 4, 5, 5)
    graph, frame = chain.graph(), chain.frame()
    by_rows, found = (
        strategy("contiguous").plan(graph, board(streams=False))
        for strategy in (Replace, Herringbone)
    )
    assert arena_nibbles(found) == 40 + 4 * 5 < arena_nibbles(by_rows)
    verify(found, graph)
    equal(interpret(found, graph, frame).output, graph.outputs(frame[None])[0])


CASES = {
    "same padding": {},
    "more above": {"padding": (2, 0, 1, 1)},
    "more on the right": {"padding": (1, 1, 0, 2)},
    "oblong kernel": {"kernel": (3, 2), "padding": (1, 1, 0, 0)},
    "tall kernel": {"kernel": (3, 1), "padding": (0, 0, 0, 0)},
    "stride": {"stride": (2, 2), "padding": (1, 0, 1, 0)},
}


@pytest.mark.parametrize("case", CASES)
def test_the_best_of_all_orders(case: str) -> None:
    """Every small shape; in some less than by rows and by columns."""
    sides = [4, 6, 8] if case == "stride" else [3, 4]
    better = 0
    for height, width in product(sides, sides):
        for fin, fout in ((1, 2), (3, 5), (5, 5), (4, 1), (2, 9)):
            chain = padded(height, width, fin, fout, **CASES[case])  # type: ignore[arg-type]
            h, w = chain.tensors["y"].shape[:2]
            plan = Herringbone().plan(chain.graph(), board(streams=False))
            found, by_rows, by_columns = (
                arena_nibbles(plan), peak(chain, rows(h, w)), peak(chain, columns(h, w))
            )  # fmt: skip
            assert best(chain) == found <= min(by_rows, by_columns), (height, width, fin, fout)
            better += found < by_rows
    assert better


@pytest.mark.ci
@settings(max_examples=100, deadline=None, derandomize=True)
@given(chains())
def test_columns_never_cost_anything(chain: Chain) -> None:
    """Whole chains of mixed widths, whose elements may fit into each other's places worse."""
    graph = chain.graph()
    for layout in LAYOUTS:
        by_rows = Replace(layout).plan(graph, board(streams=False))
        found = Herringbone(layout).plan(graph, board(streams=False))
        if any(Layer(op, chain.tensors).peelable for op in chain.operators):
            continue  # then it is not rows that herringbone was before
        assert arena_nibbles(found) <= arena_nibbles(by_rows), layout
        assert pmu_nibbles(found) <= pmu_nibbles(by_rows), layout
