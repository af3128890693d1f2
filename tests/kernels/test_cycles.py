"""What kernels say they take, against what simulated layers took (``bench.py``)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations

import pytest

from pipeline import passes
from pipeline.importers.tflite import TFLite
from pipeline.kernels import Form, Kernel, Part, cortex_m, named
from pipeline.kernels.cortex_m import costs
from pipeline.kernels.cortex_m.costs import CORES
from pipeline.kernels.cortex_m.gathered import Gathered
from pipeline.kernels.int8 import COSTS, counted
from pipeline.kernels.work import products
from pipeline.plan.vocabulary import Compute
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.bench import PLAIN
from tests.codegen.cortex_m.support import core
from tests.graphs import Net
from tests.kernels.bench import LAYERS, cores
from tests.kernels.fit import FAST, code_bytes, fitted, measured
from tests.kernels.layers import Layer, recorded, step_of
from tests.public_models import LACKING, MODELS
from tests.tiers import quick

ROWS = recorded()
LARGEST_ERROR = {
    "conv2d": 0.02, "cortex_m": 0.05, "accumulate": 0.1, "gate": 0.17, "int8": 0.36,
    "copies": 0.86,
}  # fmt: skip
"""Of what is modelled; ``conv2d``: of the fast one; ``accumulate``: sums of 8 and 16 bits in
registers; ``gate``: on the M7, elsewhere 0.09. Portable C is what the compiler makes of it: up to
twice as much for a product where a loop's bounds are in memory."""

GATES = ("cortex_m.gate", "cortex_m.row_gate")
COPIES = ("int8.concat", "int8.pad", "int8.rearrange")


def kind_of(kernel: str) -> str:
    if kernel in COPIES:
        return "copies"
    if kernel in GATES:
        return "gate"
    if kernel in ("cortex_m.conv2d", "cortex_m.accumulate"):
        return kernel.removeprefix(FAST)
    return kernel.split(".")[0]


@cache
def form_of(layer: Layer) -> Form:
    graph = layer.graph()
    plan = layer.plan(graph, core())
    return Form.of(step_of(plan, layer.kernel), plan.buffer, graph)


def modelled(layer: Layer, cpu: str = CORES[0]) -> tuple[Kernel, Form]:
    form = form_of(layer)
    return named(layer.kernel, form, core(cpu)), form


def test_all_layers_are_recorded() -> None:
    assert tuple(cortex_m.RATES) == CORES
    assert [layer for layer, _ in ROWS] == LAYERS
    for layer, (cycles, code) in ROWS:
        assert len(cycles) == len(cores(layer))
        assert min(cycles) > 0
        assert (code > 0) == layer.by_row
    kernels = {layer.kernel for layer, _ in ROWS}
    assert {kernel.name for kernel in cortex_m.kernels("cortex-m4")} <= kernels


@pytest.mark.parametrize("kernel", quick(4, sorted({layer.kernel for layer, _ in ROWS})))
def test_the_error_is_bounded(kernel: str) -> None:
    limit = LARGEST_ERROR[kind_of(kernel)]
    for layer, (cycles, _) in ROWS:
        if layer.kernel == kernel:
            for cpu, taken in zip(CORES, cycles, strict=False):
                found, form = modelled(layer, cpu)
                error = found.cycles(form) / taken - 1
                assert abs(error) <= limit, f"{layer} on {cpu}: {error:.1%}"


@pytest.mark.ci
def test_each_cost_counts() -> None:
    """None is there that no recorded layer has."""
    had: dict[str, set[str]] = {}
    for layer, _ in ROWS:
        kernel, form = modelled(layer)
        fast = isinstance(kernel, cortex_m.Fast)
        owner, counts = (f"{FAST}{kernel.word}", kernel.counts(form)) if fast else counted(form)
        had.setdefault(owner, set()).update(word for word, number in counts.items() if number)
    for kernel in cortex_m.kernels("cortex-m4"):
        assert isinstance(kernel, cortex_m.Fast)
        assert set(kernel.prices()) <= had[f"{FAST}{kernel.word}"]
    assert {name: set(costs) for name, costs in COSTS.items()} == {
        name: words for name, words in had.items() if name in COSTS
    }


def test_the_faster_kernel_is_known_to_be() -> None:
    """Where two have been measured on a layer; what gathers takes no form that others take."""
    measured: dict[str, list[tuple[float, float]]] = {}
    for layer, (cycles, _) in ROWS:
        kernel, form = modelled(layer)
        if isinstance(kernel, Gathered):
            continue
        same = repr({**layer.fields(), "kernel": ""})
        measured.setdefault(same, []).append((cycles[0], kernel.cycles(form)))
    pairs = [each for each in measured.values() if len(each) > 1]
    assert len(pairs) > 30
    for each in pairs:
        for (taken, says), (more, also) in combinations(sorted(each), 2):
            assert says < also, (taken, more)


def test_a_core_that_is_faster_takes_less() -> None:
    layer = LAYERS[0]
    graph = layer.graph()
    form = Form.whole(graph.operators[0], graph)
    taken = {cpu: named(layer.kernel, form, core(cpu)).cycles(form) for cpu in cortex_m.RATES}
    assert taken["cortex-m7"] < taken["cortex-m4"]
    portable = named("int8.conv2d", form, core()).cycles(form)
    assert portable > 2 * taken["cortex-m4"]


@pytest.mark.ci
def test_the_costs_are_the_fitted_ones() -> None:
    declared = {f"{FAST}{word}": each for word, each in costs.COSTS.items()}
    declared |= {name: {w: (n,) for w, n in each.items()} for name, each in COSTS.items()}
    for owner, rows in measured().items():
        found = fitted(rows)
        assert found.keys() == declared[owner].keys(), owner
        for word, each in found.items():
            known = declared[owner][word]
            assert each[: len(known)] == pytest.approx(known, rel=0.02), (owner, word)


def test_the_code_of_a_row_is_the_recorded_one() -> None:
    assert code_bytes() == costs.CODE_BYTES


NETWORKS = {
    "pretrainedResnet_quant": (15.98, 8.46),
    "vww_96_int8": (11.83, 6.58),
    "kws_ref_model": (4.11, 2.34),
    "ad01_int8": (0.358, 0.172),
}
"""Simulated Mcycles on a Cortex-M4 and on an M7, without flash waits: docs/kernels.md."""


@pytest.mark.parametrize("name", quick(("kws_ref_model",), NETWORKS))
def test_networks_take_what_their_layers_take(name: str) -> None:
    if not (MODELS / f"{name}.tflite").is_file():
        pytest.skip(LACKING)
    graph = passes.applied(TFLite(path=str(MODELS / f"{name}.tflite")).graph(), PLAIN)
    for cpu, mcycles in zip(("cortex-m4", "cortex-m7"), NETWORKS[name], strict=True):
        plan = Ordinary().plan(graph, core(cpu))
        found = 0.0
        for step in plan.tracks[0].steps:
            assert isinstance(step, Compute)
            form = Form.of(step, plan.buffer, graph)
            found += named(step.kernel, form, core(cpu)).cycles(form)
        assert abs(found / mcycles / 1e6 - 1) < 0.05


def test_rows_that_are_added_one_by_one_take_as_long_as_all() -> None:
    net = Net((8, 6, 8), name="net")
    net.rescaled_mean()
    graph = net.graph()
    form = Form.whole(graph.operators[0], graph)
    row = replace(form.given, extents=(1, 6, 8))
    acc = Part.packed(form.target.shape, 32)
    one = replace(form, parts={"image": row, "mean0": acc}, partial=True)
    assert 8 * products(one) == products(form) == 8 * 6 * 8
