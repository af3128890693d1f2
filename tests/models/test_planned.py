"""The zoo through the library: quantized and planned, counts are those of the PyTorch module."""

from __future__ import annotations

import pytest

from pipeline import passes
from pipeline.hardware import Hardware
from pipeline.plan.cost import cost
from pipeline.quantize.int8 import Int8
from pipeline.strategies.ordinary import Ordinary
from pipeline.training.environment import Run
from pipeline.training.random_weights import RandomWeights
from tests.boards import load_hardware
from tests.models.counting import member
from tests.models.test_zoo import TABLE, Row

QUICK_MACS, CI_MACS = 3_000_000, 9_000_000


def tier(row: Row) -> list[pytest.MarkDecorator]:
    marks = (pytest.mark.ci, pytest.mark.slow)
    return [m for m, macs in zip(marks, (QUICK_MACS, CI_MACS), strict=True) if row.macs > macs]


@pytest.fixture(scope="module")
def hardware() -> Hardware:
    return load_hardware("host")


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name, marks=tier(row)) for row in TABLE])
def test_counts_survive(row: Row, hardware: Hardware) -> None:
    model = member(row.name)
    weights = RandomWeights(images=4).train(model, {}, Run(1)).weights
    graph = Int8(images=2).graph(row.name, model, weights, {})
    graph = passes.applied(graph, ["constants", "fold_reshape", "fold_pad"])
    plan = Ordinary().plan(graph, hardware)
    costs = cost(plan, graph, hardware)
    assert (costs.pmu_bytes, costs.macs) == (row.peak_bytes, row.macs)
