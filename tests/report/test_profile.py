"""Memory by layer: what a plan says, and the picture of several."""

from __future__ import annotations

import io

import matplotlib.image
import pytest

from pipeline.plan.profile import profile
from pipeline.report.profile import MOST_NAMES, Profile, png
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.strategies import nets
from tests.strategies.test_ordinary import BOARD


def test_figure_1_by_hand() -> None:
    """13x13 pixels; 24, 144 and 144 channels, then 24 that are added to the first. Along channels
    the sums are there while the others are made, of which a channel each exists."""
    graph, pixels = nets.fig1_block(), 13 * 13
    ordinary = profile(Ordinary().plan(graph, BOARD))
    assert [name for name, _ in ordinary] == [op.name for op in graph.operators]
    assert [size / pixels for _, size in ordinary] == [24 + 144, 24 + 288, 24 + 168, 24 + 24]
    partial = profile(Partial(accumulator_bits=8, channels=1).plan(graph, BOARD))
    assert [name for name, _ in partial] == [name for name, _ in ordinary]
    assert [size / pixels for _, size in partial] == [24 + 24 + 2] * 3 + [24 + 24]


def test_each_operator_once_and_the_peak_among_them() -> None:
    graph = nets.ds_cnn((64,) * 5)
    for strategy in (Ordinary(), Partial(), Partial(accumulator_bits=8)):
        found = profile(strategy.plan(graph, BOARD))
        assert sorted(name for name, _ in found) == sorted(op.name for op in graph.operators)
        assert max(size for _, size in found) == 16_000


@pytest.mark.parametrize("layers", [2, 200])
def test_it_is_drawn(layers: int) -> None:
    order = [f"layer{n}" for n in range(layers)]
    plans = [
        Profile(name, tuple((layer, 1000.0 * k + n) for n, layer in enumerate(order[::step])))
        for k, (name, step) in enumerate([("ordinary", 1), ("patch", 1), ("partial", -1)], 1)
    ]
    picture = png(plans)
    assert picture is not None and MOST_NAMES < 200
    assert matplotlib.image.imread(io.BytesIO(picture), format="png").shape[:2] == (690, 1500)
    assert png(plans) == picture


def test_nothing_to_compare() -> None:
    one = Profile("ordinary", (("conv", 4.0),))
    other = Profile("patch", (("dense", 4.0),))
    assert png([one]) is None and png([one, other]) is None and png([one] * 9) is None
    assert png([Profile("a", ()), Profile("b", ())]) is None
