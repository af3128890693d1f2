"""Networks from .tflite files: import, plan, generate, run; the C equals the graph, and the
interpreter of TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from pipeline import passes
from pipeline.graph.graph import Graph
from pipeline.strategies.ordinary import Ordinary
from pipeline.targets.predictor import Predictor
from tests.codegen.int8.support import Native, frames, host
from tests.comparing import equal
from tests.importers.test_tflite import MLPERF_TINY, mlperf_tiny
from tests.importers.tflite_cases import CASES
from tests.importers.tflite_networks import network
from tests.importers.tflite_reference import imported, reference
from tests.tiers import quick


def check(contents: Iterable[bytes], folder: Path) -> None:
    for number, content in enumerate(contents):
        graph = imported(content, folder)
        plan = Ordinary().plan(graph, host())
        given = frames(graph, 5, number)
        native = Native(folder / f"{number}", graph, plan)
        equal(native(given), graph.outputs(given), number=number)


@pytest.mark.parametrize("seed", quick(1, range(2), ci=0))
@pytest.mark.parametrize("kind", CASES)
def test_every_operator_of_tflite(kind: str, seed: int, tmp_path: Path) -> None:
    check([CASES[kind](np.random.default_rng(seed))], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_every_operator_of_tflite_on_many(kind: str, tmp_path: Path) -> None:
    check((CASES[kind](np.random.default_rng(seed)) for seed in range(100, 130)), tmp_path)


@pytest.mark.ci
def test_networks_of_tflite(tmp_path: Path) -> None:
    check((network(np.random.default_rng(seed)) for seed in range(3)), tmp_path)


@pytest.mark.slow
def test_many_networks_of_tflite(tmp_path: Path) -> None:
    check((network(np.random.default_rng(seed)) for seed in range(100, 250)), tmp_path)


def loaded(graph: Graph) -> Predictor:
    return Predictor.build(graph, Ordinary().plan(graph, host()), host(), threads=2)


@pytest.mark.parametrize("name", quick(1, MLPERF_TINY, ci=1))
def test_mlperf_tiny(name: str) -> None:
    _, graph = mlperf_tiny(name)
    given = frames(graph, 6)
    equal(loaded(graph).predict(given.astype(np.int8)), graph.outputs(given))


@pytest.mark.slow
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_mlperf_tiny_equals_tflite_micro_on_a_thousand_inputs(name: str) -> None:
    """Once as it is, once with all the lossless passes applied."""
    content, graph = mlperf_tiny(name)
    given = frames(graph, 1000, 2).astype(np.int8)
    expected = reference(content, given)
    for each in (graph, passes.applied(graph, passes.known())):
        outputs = loaded(each).predict(given)
        equal(outputs.reshape(len(given), -1), expected)
