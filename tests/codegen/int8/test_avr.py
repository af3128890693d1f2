"""The same C on a core whose integers have 16 bits and whose constants lie in flash: simulated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline import artifacts
from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.kernels.int8 import word
from pipeline.plan.forms import forms
from pipeline.plan.vocabulary import Compute, Plan, Track
from pipeline.strategies.chain import ChainStrategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets import builds, simavr
from pipeline.targets.harness import harness_sources
from tests.codegen.int8.scattered import Kind, scattered
from tests.codegen.int8.support import Native, apart, frames
from tests.codegen.int8.test_in_place import chain
from tests.comparing import equal
from tests.graphs import Net
from tests.strategies.chains import IN_PLACE
from tests.strategies.peaks import pmu_nibbles
from tests.strategies.test_branches import residual
from tests.targets.conftest import load_hardware, needs_avr
from tests.tiers import quick

pytestmark = needs_avr
UNO = load_hardware(weights_in="flash", streams_input=False)


def network() -> Graph:
    net = Net((6, 6, 2), np.random.default_rng(3), name="small")
    start = net.conv(4)
    net.plus(net.depthwise(), start)
    net.lookup()
    net.maximum((2, 2), stride=(2, 2))
    net.conv(5, (1, 1))
    net.times(net.last, net.mean((3, 3)))
    net.dense(4)
    net.softmax()
    return net.graph()


def portable(plan: Plan, graph: Graph) -> Plan:
    """All steps by the kernels for bytes."""
    steps = tuple(
        replace(step, kernel=f"int8.{word(graph.operator(step.op))}")
        if isinstance(step, Compute)
        else step
        for step in plan.tracks[0].steps
    )
    return replace(plan, tracks=(Track("cpu", steps),))


def check(graph: Graph, plan: Plan, folder: Path) -> None:
    files = generate(graph, portable(plan, graph), UNO, {})
    assert "nn_flash_i8(" in files["model.c"] and "NN_FLASH =" in files["model.c"]
    for name, content in {**files, **harness_sources(UNO)}.items():
        artifacts.write_text(folder / "generated" / name, content)
    size = builds.build(folder / "generated", folder / "build", UNO)
    given = frames(graph, 3)
    expected = graph.outputs(given)
    runs = simavr.run(folder / "build", vars(size), UNO, given.astype(np.int8).view(np.uint8))
    equal(runs.outputs.view(np.int8).reshape(expected.shape), expected)
    native = Native(folder / "native", graph, plan, files=files)
    equal(native(given), expected)


def test_ordinary_execution(tmp_path: Path) -> None:
    graph = network()
    check(graph, Ordinary().plan(graph, UNO), tmp_path)


@pytest.mark.parametrize("layout", quick(1, ["slots", "contiguous"]))
def test_in_place(layout: str, tmp_path: Path) -> None:
    graph = chain(3)
    check(graph, Herringbone(layout=layout).plan(graph, UNO), tmp_path)  # type: ignore[arg-type]


@pytest.mark.ci
@pytest.mark.parametrize("strategy", quick(1, IN_PLACE[::-1], ci=0))
def test_branches_in_place(strategy: type[ChainStrategy], tmp_path: Path) -> None:
    """A residual block pixel by pixel, beside whose input 2w + 4 pixels are held."""
    graph = residual(6, 5, 3)
    plan = strategy().plan(graph, UNO)
    assert pmu_nibbles(plan) <= 2 * 3 * (30 + 2 * 5 + 4)
    assert all(form.steps > 1 for form in forms(plan).values())
    check(graph, plan, tmp_path)


@pytest.mark.parametrize("kind", quick(1, ["torn", "rows"]))
def test_rows_and_elements_anywhere(kind: Kind, tmp_path: Path) -> None:
    graph = network()
    check(graph, scattered(apart(graph), graph, kind, 0), tmp_path)
