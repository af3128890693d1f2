"""Depthwise convolutions of 4 bits: every plan's C gives the graph's outputs, on the chip, too."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from pipeline.graph.graph import Graph
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from tests.codegen.support import Native, agrees
from tests.codegen.test_mixed import answers
from tests.strategies.chains import STRATEGIES, Chain, board
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.cortex_m import built
from tests.tiers import quick


def separable(seed: int = 0, depth: int = 5) -> Graph:
    """An odd number of channels: their nibbles of one tap end within a byte."""
    chain = Chain((9, 8, depth), seed=seed).conv("a", depth, 3, groups=depth).conv("b", 6, 1)
    chain.conv("c", 6, (3, 2), groups=6, padding=(1, 1, 1, 0), dilation=(2, 1))
    return chain.maximum("m").dense("d", 3).graph()


@pytest.mark.parametrize(
    ("kind", "weights_in"),
    quick([(Herringbone, "flash")], product(STRATEGIES, ["flash", "sram"]), ci=0),
)
def test_every_plan(kind: type[Strategy], weights_in: str, tmp_path: Path) -> None:
    graph, hardware = separable(), replace(board(True, weights_in), core="avr")
    plan = kind("slots").plan(graph, hardware)  # type: ignore[call-arg]
    assert agrees(Native(tmp_path, graph, plan, hardware), chunk=7)


@needs_avr
@pytest.mark.slow
def test_on_the_chip(tmp_path: Path) -> None:
    graph, hardware = separable(1, 4), load_hardware(weights_in="flash")
    plan = Herringbone("slots").plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    assert size.status == "ok", size.where
    assert answers(graph, tmp_path, size, hardware)
