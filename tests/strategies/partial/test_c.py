"""Plans of partial execution as C on this computer: the graph's outputs byte for byte."""

from __future__ import annotations

from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.plan.interpret import interpret
from pipeline.plan.vocabulary import Loop
from pipeline.strategies.partial import Partial
from tests.codegen.int8.support import Native, agrees, frames, host
from tests.comparing import equal
from tests.strategies import nets
from tests.strategies.partial.networks import random_network
from tests.strategies.partial.test_plans import narrow
from tests.tiers import quick


@cache
def looping(most: int) -> list[Graph]:
    """The first random networks whose plans have loops."""
    found, seed = list[Graph](), 0
    while len(found) < most:
        graph = random_network(seed, 8)
        steps = Partial().plan(graph, host()).tracks[0].steps
        found += [graph] if any(isinstance(step, Loop) for step in steps) else []
        seed += 1
    return found


CASES = ((0, 0), (1, 1), (2, 3), *product(range(4), (0, 1, 3)))


@pytest.mark.parametrize(("number", "channels"), quick(1, [*dict.fromkeys(CASES)], ci=2))
def test_random_networks(tmp_path: Path, number: int, channels: int) -> None:
    graph = looping(4)[number]
    assert agrees(Native(tmp_path, graph, Partial(channels=channels).plan(graph, host())))


@pytest.mark.parametrize("channels", quick(1, [50, 0]))
def test_figure_1(tmp_path: Path, channels: int) -> None:
    graph = nets.fig1_block()
    assert agrees(Native(tmp_path, graph, Partial(channels=channels).plan(graph, host())))


@pytest.mark.parametrize("bits", quick(1, [8, 16]))
def test_rounded_sums(tmp_path: Path, bits: int) -> None:
    """The interpreter says what they are, C equals it."""
    graph = nets.fig1_block()
    _, plan = narrow(graph, bits, 16)
    given = frames(graph, 4)
    expected = np.stack([interpret(plan, graph, frame).output for frame in given])
    equal(Native(tmp_path, graph, plan)(given), expected)
