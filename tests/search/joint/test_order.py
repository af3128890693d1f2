"""The order's peak against the least over all orders of rows."""

from __future__ import annotations

import pytest

from pipeline.graph.graph import Graph
from pipeline.schedules.lower import needed
from pipeline.search.joint.best_first import better
from pipeline.search.joint.cuts import Cuts
from pipeline.search.joint.segment import peak as peak_of
from pipeline.search.joint.units import Units
from tests.search import joint_exact
from tests.search.joint.exact import least_peak, network_of, peak
from tests.search.joint.tiny import tiny
from tests.strategies.nets import Net
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick


@pytest.mark.parametrize("seed", quick(10, range(30), ci=8))
def test_no_order_holds_less(seed: int) -> None:
    """Of the 2 in 100 that may be more than the least, none is among these."""
    found = joint_exact.compared(seed)
    assert found is None or found.planned == found.least


@pytest.mark.slow
def test_a_thousand_networks(capsys: pytest.CaptureFixture[str]) -> None:
    assert joint_exact.main(["1000"]) == 0, capsys.readouterr().out


def chain() -> Graph:
    """Two rows of 4 B, each from two rows of 8 B."""
    net = Net((4, 4, 2), weights=False)
    return net.graph(net.maximum("input"))


def test_the_least_of_a_chain_by_hand() -> None:
    """A row saves its 4 B over one that dies, but for the pixel of 2 B that is kept aside."""
    held, streamed = (network_of(chain(), BOARD, each) for each in (False, True))
    assert least_peak(held, 100) == 2 * (4 * 8 + 2)
    rows = [("input", 0), ("input", 1), ("maxpool2d0", 0), ("input", 2), ("input", 3)]
    order = [*rows, ("maxpool2d0", 1)]
    assert least_peak(streamed, 100) == peak(streamed, order) == 2 * (4 + 2 * 8 + 2)
    assert least_peak(streamed, 3) is None


def test_an_order_that_cannot_be_is_none() -> None:
    network = network_of(chain(), BOARD, True)
    with pytest.raises(AssertionError):
        peak(network, [("input", 1), ("input", 0), ("maxpool2d0", 0)])
    with pytest.raises(AssertionError):
        peak(network, [("input", 0)])


def test_other_orders_are_looked_at() -> None:
    """On demand, one of two branches frees rows that the other still holds."""
    graph = tiny(16)
    cuts = Cuts(Units.of(graph, BOARD, needed(graph), False))
    order, ends = cuts.order(cuts.whole), cuts.ends(cuts.whole)
    on_demand = peak_of(cuts.units, order, *ends, 1 << 60)
    found = better(cuts.units, order, *ends, on_demand, 10_000)
    assert found is not None and sorted(found) == sorted(order)
    least = peak_of(cuts.units, found, *ends, 1 << 60)
    assert least < on_demand and cuts.least() == (least, [cuts.whole])
    assert better(cuts.units, order, *ends, least, 10_000) is None  # proved
    assert better(cuts.units, order, *ends, on_demand, 2) is None  # too few


@pytest.mark.parametrize("seed", quick(6, range(20), ci=14))
def test_what_is_found_is_an_order_with_that_peak(seed: int) -> None:
    """The least below whatever is known, also where much is."""
    graph = tiny(seed)
    cuts = Cuts(Units.of(graph, BOARD, needed(graph), seed % 2 == 0))
    order, ends = cuts.order(cuts.whole), cuts.ends(cuts.whole)
    found = better(cuts.units, order, *ends, 1 << 60, 20_000)
    assert found is not None
    least = peak_of(cuts.units, found, *ends, 1 << 60)
    assert least <= cuts.least()[0]
    assert better(cuts.units, order, *ends, least, 20_000) is None
