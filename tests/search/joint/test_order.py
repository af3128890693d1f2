"""Orders of rows and places of small networks are 1 % off the best on average, none 5 %."""

import pytest

from pipeline.schedules.lower import needed
from pipeline.search.joint.cuts import ROWS, Cuts, Offer, Piece, Way
from pipeline.search.joint.fastest import Fastest
from pipeline.search.joint.segment import peak as peak_of
from pipeline.search.order import Order, least_peak
from pipeline.search.view.rows import Units
from tests.graphs import Net
from tests.search import optimality
from tests.search.optimality import PROBLEMS, row_order, tiny
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick


@pytest.mark.parametrize("seed", quick(10, range(30), ci=8))
def test_no_order_holds_less(seed: int) -> None:
    """Compare networks that are none of the 2 in 100 whose peak may be more than the least."""
    found = row_order(seed)
    assert found is None or found.share == 0


def others(cuts: Cuts, effort: int = 1_000_000) -> tuple[Order, list[int]]:
    """The best order of all rows, as is known of it, and its units."""
    order = list(cuts.order(cuts.whole))
    view, given = cuts.units.view(order, cuts.ends(cuts.whole)[1])
    found = least_peak(view, effort, ())
    return found, [order[task - given] for task in found.tasks if task >= given]


def test_other_orders_are_looked_at() -> None:
    """On demand, one of two branches frees rows that the other still holds."""
    graph = tiny(16)
    cuts = Cuts(Units(graph, BOARD, needed(graph), False))
    order, ends = list(cuts.order(cuts.whole)), cuts.ends(cuts.whole)
    on_demand, _ = peak_of(cuts.units, order, cuts.whole[:2], *ends, 1 << 60)
    found, units = others(cuts)
    few, _ = others(cuts, 1)
    assert few.peak == on_demand and few.bound <= found.peak
    assert found.proved and sorted(units) == sorted(order)
    least, _ = peak_of(cuts.units, units, cuts.whole[:2], *ends, 1 << 60)
    assert least == found.peak < on_demand and cuts.least() == (least, [cuts.whole])


def test_what_has_channels_last_for_a_piece_has_it_for_the_way() -> None:
    way = Way(1.0, (Piece(0, 1),), frozenset("a"))
    assert way.on(Offer(Piece(1, 2), last=frozenset("b")), 2.0).last == frozenset("ab")


@pytest.mark.parametrize("fast", [False, True])
def test_effort_bounds_the_rows_that_are_looked_at(fast: bool) -> None:
    """Besides all rows at once and those of each operator alone, which cost nothing more."""
    net, looked = Net((12, 12, 4)), list[int]()
    for _ in range(40):
        net.conv(4, (3, 3))
    graph = net.graph()
    for effort in (1e-6, 1e-3, 10.0):
        cuts = Cuts(Units(graph, BOARD, needed(graph), False), effort=effort)
        found = Fastest(cuts).within(1 << 30) if fast else cuts.least(effort=0)
        assert found
        looked.append(int(effort * ROWS) - cuts.left)
    rows = 3 * len(cuts.units.units)
    assert looked[0] <= rows and looked[0] < looked[1] <= 1e-3 * ROWS + rows
    assert looked[1] <= looked[2] < ROWS


@pytest.mark.parametrize("seed", quick(6, range(20), ci=14))
def test_what_is_found_is_an_order_with_that_peak(seed: int) -> None:
    """The least below whatever is known, also where much is; rows of pieces as of each alone."""
    graph = tiny(seed)
    cuts = Cuts(Units(graph, BOARD, needed(graph), seed % 2 == 0))
    for piece in (Piece(start, cuts.whole.stop) for start in range(cuts.whole.stop)):
        assert list(cuts.order(piece)) == list(Cuts(cuts.units).order(piece))
    found, units = others(cuts)
    least, _ = peak_of(cuts.units, units, cuts.whole[:2], *cuts.ends(cuts.whole), 1 << 60)
    assert least == found.peak <= cuts.least()[0] and found.proved


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_few_networks_get_the_least(problem: str) -> None:
    found = [PROBLEMS[problem](number) for number in range(6)]
    assert all(gap is None or gap.share == 0 for gap in found) and any(found)


@pytest.mark.slow
def test_two_hundred_networks(capsys: pytest.CaptureFixture[str]) -> None:
    assert optimality.main([]) == 0, capsys.readouterr().out
