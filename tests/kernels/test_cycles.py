"""What kernels say they take, against what simulated layers took (``bench.py``)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pipeline import passes
from pipeline.importers.tflite import TFLite
from pipeline.kernels import Form, Kernel, Part, cortex_m, named
from pipeline.kernels.int8 import COSTS, counted
from pipeline.kernels.work import products
from pipeline.plan.vocabulary import Compute
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.bench import PLAIN
from tests.codegen.cortex_m.support import core
from tests.graphs import Net
from tests.importers.test_tflite import MODELS
from tests.kernels.bench import LAYERS
from tests.kernels.fit import fitted, measured
from tests.kernels.layers import RECORDED, Layer, step_of

ROWS: list[dict[str, Any]] = json.loads(RECORDED.read_text())
LARGEST_ERROR = {"cortex_m": 0.11, "rows": 0.055, "int8": 0.36, "copies": 0.86}
"""Of what is modelled; ``rows``: of kernels that make one. Portable C is what the compiler makes of
it: up to twice as much for a product where a loop's bounds are in memory."""

COPIES = ("int8.concat", "int8.pad", "int8.rearrange")


def kind_of(kernel: str) -> str:
    if kernel in COPIES:
        return "copies"
    return "rows" if kernel.startswith("cortex_m.row_") else kernel.split(".")[0]


def layer_of(row: dict[str, Any]) -> Layer:
    return Layer.of({name: value for name, value in row.items() if name != "cycles"})


def modelled(layer: Layer) -> tuple[Kernel, Form]:
    graph = layer.graph()
    plan = layer.plan(graph, core())
    form = Form.of(step_of(plan, layer.kernel), plan.buffer, graph)
    return named(layer.kernel, form, core()), form


def test_all_layers_are_recorded() -> None:
    assert [layer_of(row) for row in ROWS] == LAYERS
    assert all(row["cycles"] > 0 for row in ROWS)
    kernels = {row["kernel"] for row in ROWS}
    assert {kernel.name for kernel in cortex_m.kernels("cortex-m4")} <= kernels


@pytest.mark.parametrize("kernel", sorted({row["kernel"] for row in ROWS}))
def test_the_error_is_bounded(kernel: str) -> None:
    limit = LARGEST_ERROR[kind_of(kernel)]
    for row in ROWS:
        if row["kernel"] == kernel:
            found, form = modelled(layer_of(row))
            error = found.cycles(form) / row["cycles"] - 1
            assert abs(error) <= limit, f"{row}: {error:.1%}"


def test_each_cost_counts() -> None:
    """None is there that no recorded layer has, and no layer does what has no cost."""
    had: dict[str, set[str]] = {}
    for row in ROWS:
        kernel, form = modelled(layer_of(row))
        if isinstance(kernel, cortex_m.Fast):
            counts, owner, costs = kernel.counts(form), kernel.name, kernel.costs
        else:
            owner, counts = counted(form)
            costs = COSTS[owner]
        assert set(counts) <= set(costs)
        had.setdefault(owner, set()).update(word for word, number in counts.items() if number)
        assert had[owner] <= set(costs)
    for kernel in cortex_m.kernels("cortex-m4"):
        assert isinstance(kernel, cortex_m.Fast)
        assert set(kernel.costs) == had[kernel.name]
    assert {name: set(costs) for name, costs in COSTS.items()} == {
        name: words for name, words in had.items() if name in COSTS
    }


def test_the_faster_kernel_is_known_to_be() -> None:
    """Where two have been measured on a layer."""
    measured: dict[str, list[tuple[float, float]]] = {}
    for row in ROWS:
        layer = layer_of(row)
        kernel, form = modelled(layer)
        same = repr({**layer.fields(), "kernel": ""})
        measured.setdefault(same, []).append((row["cycles"], kernel.cycles(form)))
    pairs = [each for each in measured.values() if len(each) > 1]
    assert len(pairs) > 30
    for each in pairs:
        assert [taken for taken, _ in sorted(each)] == [
            taken for taken, _ in sorted(each, key=lambda pair: pair[1])
        ]


def test_a_core_that_is_faster_takes_less() -> None:
    layer = LAYERS[0]
    graph = layer.graph()
    form = Form.whole(graph.operators[0], graph)
    taken = {cpu: named(layer.kernel, form, core(cpu)).cycles(form) for cpu in cortex_m.RATES}
    assert taken["cortex-m7"] < taken["cortex-m4"]
    portable = named("int8.conv2d", form, core()).cycles(form)
    assert portable > 2 * taken["cortex-m4"]


@pytest.mark.parametrize("owner", sorted(measured()))
def test_the_costs_are_the_fitted_ones(owner: str) -> None:
    kernels = {kernel.name: kernel.costs for kernel in cortex_m.kernels("cortex-m4")}
    declared = {**COSTS, **kernels}[owner]
    found = {word: cost for word, cost in fitted(measured()[owner]).items() if cost}
    assert declared == pytest.approx(found, rel=0.02)


NETWORKS = {
    "pretrainedResnet_quant": (15.98, 11.46),
    "vww_96_int8": (11.83, 8.35),
    "kws_ref_model": (4.11, 2.96),
    "ad01_int8": (0.358, 0.245),
}
"""Simulated Mcycles on a Cortex-M4 and on an M7, without flash waits: docs/kernels.md."""


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_take_what_their_layers_take(name: str) -> None:
    if not (MODELS / f"{name}.tflite").is_file():
        pytest.skip(f"{name}.tflite is not there: set THIMBLE_MODELS to its folder")
    graph = passes.applied(TFLite(path=str(MODELS / f"{name}.tflite")).graph(), PLAIN)
    for cpu, mcycles in zip(("cortex-m4", "cortex-m7"), NETWORKS[name], strict=True):
        plan = Ordinary().plan(graph, core(cpu))
        found = 0.0
        for step in plan.tracks[0].steps:
            assert isinstance(step, Compute)
            form = Form.of(step, plan.buffer, graph)
            found += named(step.kernel, form, core(cpu)).cycles(form)
        assert abs(found / mcycles / 1e6 - 1) < 0.1


def test_rows_that_are_added_one_by_one_take_as_long_as_all() -> None:
    net = Net((8, 6, 8), name="net")
    net.rescaled_mean()
    graph = net.graph()
    form = Form.whole(graph.operators[0], graph)
    row = replace(form.given, extents=(1, 6, 8))
    acc = Part.packed(form.target.shape, 32)
    one = replace(form, parts={"image": row, "mean0": acc}, partial=True)
    assert 8 * products(one) == products(form) == 8 * 6 * 8
