"""What lossless passes saved, from what stage quantize writes down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.plan.cost import cost
from pipeline.report import page
from pipeline.report.savings import savings
from tests.passes.networks import Network
from tests.plan.fixtures import herringbone
from tests.plan.test_cost import BOARD

ROWS = [
    {"pass": "", "weight_bytes": 219_064, "macs": 7_489_664, "operators": 32},
    {"pass": "fold_reshape", "weight_bytes": 219_064, "macs": 7_489_664, "operators": 31},
    {"pass": "fold_pad", "weight_bytes": 219_064, "macs": 7_500_000, "operators": 31},
    {"pass": "dead_channels", "weight_bytes": 33_374, "macs": 3_500_000, "operators": 31},
]


def test_each_size_says_which_pass_made_it_smaller() -> None:
    weights, macs, operators = savings(ROWS)
    assert (weights.before, weights.after, weights.by) == (219_064, 33_374, ("dead_channels",))
    assert macs.by == ("dead_channels",) and operators.by == ("fold_reshape",)
    assert round(weights.share, 3) == 0.152
    assert savings(()) == () and savings(ROWS[:1]) == () and savings(ROWS[::-1]) == ()


def test_the_passes_are_measured_one_by_one() -> None:
    graph = Network(np.random.default_rng(0), (4, 4, 2)).conv(3).reshape(12).graph()
    names = ["fold_reshape", "fold_pad"]
    found = [(name, passes.size(each)) for name, each in passes.one_by_one(graph, names)]
    assert [name for name, _ in found] == ["", *names]
    assert found[0][1]["operators"] == len(graph.operators)
    assert found[-1][1] == passes.size(passes.applied(graph, names))
    with pytest.raises(ThimbleError, match="no pass magic"):
        list(passes.one_by_one(graph, ["magic"]))


def test_the_page_says_it(tmp_path: Path) -> None:
    plan, graph = herringbone(np.random.default_rng(0))
    costs = cost(plan, graph, BOARD)
    for rows, said in ((ROWS, True), (ROWS[:1], False)):
        page.write(tmp_path / "r.html", graph, plan, BOARD, costs, {}, {"status": "ok"}, {}, rows)
        text = (tmp_path / "r.html").read_text()
        assert ("33,374" in text and "dead_channels" in text) == said
