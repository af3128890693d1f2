"""Over the zoo, the joint schedule takes no more than any other strategy that computes nothing
twice, has exact sums and needs no card."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
import yaml

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.home import ROOT
from pipeline.models.network import state_arrays
from pipeline.plan.cost import cost
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.quantize.int8 import Int8
from pipeline.strategies.base import LAYOUTS, Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.replace import Replace
from pipeline.strategies.single_transpose import SingleTranspose
from tests.models.counting import member
from tests.strategies.chains import mnist
from tests.targets.cortex_m import board_named
from tests.tiers import quick

PRESETS: tuple[Strategy, ...] = (
    Ordinary(),
    Partial(),
    *(
        kind(layout=layout)
        for kind in (Herringbone, Replace, SingleTranspose)
        for layout in LAYOUTS
    ),
)

OWN = {"integer", "onnx", "tflite", "torch"}
"""Networks that a user brings."""

FOUR_BITS = {"mnist_2kb", "record_mnist", "record_mnist_flash"}
"""Trained with 4 bits: ``mnist`` has the shapes of the first."""

ZOO = {
    path.stem
    for path in (ROOT / "conf" / "model").glob("*.yaml")
    if "_target_" in yaml.safe_load(path.read_text()) and path.stem not in OWN | FOUR_BITS
}

FIRST = [
    ("mnist", False),
    ("autoencoder", False),
    ("autoencoder", True),
    ("mnist", True),
    ("lenet5", False),
    ("ds_cnn_s", True),
]
"""The first for ``make test``, the others of these for ``.ci/run``."""


@cache
def network(name: str) -> Graph:
    if name == "mnist":
        return mnist().graph()
    model = member(name)
    graph = Int8(images=1).graph(name, model, state_arrays(model.build()), {})
    return passes.applied(graph, ["constants", "fold_reshape", "fold_pad"])


def pmu_bytes(strategy: Strategy, graph: Graph, streamed: bool) -> float | None:
    """Of a plan that is proved; None without one."""
    board = replace(board_named("nucleo_l4r5zi"), streams_input=streamed)
    try:
        plan = roomy(strategy.plan(graph, board))
    except ThimbleError:
        return None
    report = verify(plan, graph)
    assert not report.recomputed
    return cost(plan, graph, board, report).pmu_bytes


EVERY = [(name, streamed) for name in sorted({*ZOO, "mnist"}) for streamed in (False, True)]
REST = [each for each in EVERY if each not in FIRST]


@pytest.mark.parametrize(("name", "streamed"), quick(1, FIRST + REST, ci=len(FIRST) - 1))
def test_never_more_than_a_preset(name: str, streamed: bool) -> None:
    graph = network(name)
    least = pmu_bytes(Joint(), graph, streamed)
    assert least is not None
    for preset in PRESETS:
        other = pmu_bytes(preset, graph, streamed)
        assert other is None or least <= other, preset
