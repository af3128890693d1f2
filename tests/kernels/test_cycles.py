"""Cycles that kernels declare, against what simulated layers took (``bench.py``), and modelled
cycles of whole plans: steps of the tape and waits for weights included; and times of operators by
themselves, weights in a window."""

import json
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import inf

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import (
    Form,
    Kernel,
    Part,
    cortex_m,
    cycles_by_operator,
    cycles_of_step,
    modelled_cycles,
    named,
    thumb,
)
from pipeline.kernels.alone import alone_us
from pipeline.kernels.cortex_m import costs
from pipeline.kernels.cortex_m.costs import CORES
from pipeline.kernels.cortex_m.gathered import Gathered
from pipeline.kernels.int8 import COSTS
from pipeline.kernels.waits import Waits
from pipeline.kernels.work import products
from pipeline.plan.rates import ALONE_US, KERNELS_US, Rates, note_us, noted_us
from pipeline.plan.vocabulary import Compute, Plan, PlanError
from pipeline.search.view.tiles import TiledLayer, layers, timed
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.swap import Swap
from pipeline.timing.simulate import simulate
from pipeline.timing.summary import summarized
from pipeline.verdict import check
from tests.codegen.cortex_m.bench import without_waits
from tests.codegen.cortex_m.bench_rows import RATIOS
from tests.codegen.cortex_m.support import core
from tests.graphs import Chained, Net
from tests.kernels.fit import FAST, code_bytes, costly, fitted, measured
from tests.kernels.layers import Layer, cores, form_of, recorded
from tests.strategies import nets
from tests.strategies.swap.nets import Chain, board
from tests.targets.cortex_m import board_named
from tests.tiers import quick

ROWS = recorded()
LARGEST_ERROR = {
    "cortex_m.accumulate": 0.1, "cortex_m.elements": 0.17,
    "cortex_m.row_depthwise": 0.085, "cortex_m.row_pool": 0.11, "cortex_m": 0.05, "thumb": 0.03,
    "int8.concat": 0.86, "int8.pad": 0.86, "int8.rearrange": 0.86, "int8": 0.36,
}  # fmt: skip
"""Largest errors modelled, by kernel or by set; ``accumulate``: sums of 8 and 16 bits in registers;
``elements``: on the M7, elsewhere 0.09. ``row_depthwise`` and portable C are what a compiler makes
of them: the latter takes up to twice as much for a product where a loop's bounds are in memory."""

OF_THEIR_OWN = (*cortex_m.kernels("cortex-m4"), *thumb.KERNELS)


def modelled(layer: Layer, cpu: str = "") -> tuple[Kernel, Form]:
    form = form_of(layer)
    return named(layer.kernel, form, core(cpu or cores(layer)[0])), form


def test_all_kernels_are_recorded() -> None:
    assert tuple(cortex_m.RATES) == CORES
    for layer, (cycles, code) in ROWS:
        assert len(cycles) == len(cores(layer)) and min(cycles) > 0
        assert (code > 0) == layer.by_row
    assert {kernel.name for kernel in OF_THEIR_OWN} <= {layer.kernel for layer, _ in ROWS}


@pytest.mark.parametrize("kernel", quick(4, sorted({layer.kernel for layer, _ in ROWS})))
def test_the_error_is_bounded(kernel: str) -> None:
    limit = LARGEST_ERROR.get(kernel, LARGEST_ERROR[kernel.partition(".")[0]])
    for layer, (cycles, _) in ROWS:
        if layer.kernel == kernel:
            for cpu, taken in zip(cores(layer), cycles, strict=True):
                found, form = modelled(layer, cpu)
                error = found.cycles(form) / taken - 1
                assert abs(error) <= limit, f"{layer} on {cpu}: {error:.1%}"


@pytest.mark.ci
def test_each_cost_counts() -> None:
    """None is there that no recorded layer has; nothing is counted that costs nothing in Thumb."""
    had = {
        owner: {word for counts, _ in rows for word, number in counts.items() if number}
        for owner, rows in measured().items()
    }
    for kernel in OF_THEIR_OWN:
        assert set(kernel.prices()) <= had[costly(kernel)]
    assert all(set(kernel.costs or ()) == had[costly(kernel)] for kernel in thumb.KERNELS)
    had["recurrent"] = had["dense"]  # whose costs a cell's are
    assert {name: set(costs) for name, costs in COSTS.items()} == {
        name: words for name, words in had.items() if name in COSTS
    }


@pytest.mark.ci
def test_the_faster_kernel_is_known_to_be() -> None:
    """Compare two that were measured on a layer; what gathers takes no form that others take."""
    measured: dict[str, list[tuple[float, float]]] = {}
    for layer, (cycles, _) in ROWS:
        kernel, form = modelled(layer)
        if isinstance(kernel, Gathered | thumb.ThumbKernel):
            continue
        same = repr({**layer.fields(), "kernel": ""})
        measured.setdefault(same, []).append((cycles[0], kernel.cycles(form)))
    pairs = [each for each in measured.values() if len(each) > 1]
    assert len(pairs) > 30
    for each in pairs:
        for (taken, says), (more, also) in combinations(sorted(each), 2):
            assert says < also, (taken, more)


@pytest.mark.ci
def test_the_costs_are_the_fitted_ones() -> None:
    declared = {f"{FAST}{word}": each for word, each in costs.COSTS.items()}
    owned = {kernel.name: kernel.prices() for kernel in thumb.KERNELS}
    declared |= {
        name: {w: (n,) for w, n in each.items() if n} for name, each in {**COSTS, **owned}.items()
    }
    for owner, rows in measured().items():
        found = fitted(rows)
        assert found.keys() == declared[owner].keys(), owner
        for word, each in found.items():
            known = declared[owner][word]
            assert each[: len(known)] == pytest.approx(known, rel=0.02), (owner, word)


def test_the_code_of_a_row_is_the_recorded_one() -> None:
    assert code_bytes() == costs.CODE_BYTES


def test_rows_that_are_added_one_by_one_take_as_long_as_all() -> None:
    graph = Chained(Net((8, 6, 8), name="net")).rescaled_mean().graph()
    form = Form.whole(graph.operators[0], graph)
    row = replace(form.given, extents=(1, 6, 8))
    acc = Part.packed(form.target.shape, 32)
    one = replace(form, parts={"image": row, "mean0": acc}, partial=True)
    assert 8 * products(one) == products(form) == 8 * 6 * 8


KWS = nets.ds_cnn((64,) * 5)
L4R5, U575, PICO = map(board_named, ("nucleo_l4r5zi", "nucleo_u575zi", "pico"))
BOARDS = quick(1, [("L4R5", L4R5), ("M4", without_waits(L4R5))])


@cache
def planned(strategy: Strategy, board: Hardware) -> Plan:
    return strategy.plan(KWS, board)


def ratio(strategy: Strategy, board: Hardware) -> float:
    """Modelled cycles to those of whole tensors."""
    whole, found = (
        modelled_cycles(planned(each, board), KWS, board) for each in (Ordinary(), strategy)
    )
    return found / whole


@pytest.mark.parametrize(("label", "board"), BOARDS)
def test_ratios_to_whole_tensors_are_as_simulated(label: str, board: Hardware) -> None:
    """Within the kernels' error; pixels in place wait for weights and code again and again."""
    for name, strategy, near in (("rows", Joint(), 0.06), ("in place", Herringbone(), 0.05)):
        recorded = json.loads(RATIOS.read_text())[f"kws_ref_model, {name}, {label}"]
        assert ratio(strategy, board) == pytest.approx(recorded, rel=near), name


def test_weights_in_flash_are_waited_for_as_often_as_they_are_read() -> None:
    """Four pixels at a time, by a convolution of 125 pixels and 4 KB of weights, which no cache of
    256 B holds: 5 waits for 8 bytes."""
    op = KWS.operator("conv2d2")
    form = Form.whole(op, KWS)
    kernel = named("cortex_m.conv2d", form, L4R5)
    assert kernel.table_passes(form) == 32
    assert kernel.table_bytes(form) == 64 * 64 + 64 * 16
    plan = planned(Ordinary(), L4R5)
    waits = modelled_cycles(plan, KWS, L4R5) - modelled_cycles(plan, KWS, without_waits(L4R5))
    each = 32 * kernel.table_bytes(form) * 5 / 8
    assert 4 * each < waits < 5 * each


def test_a_cache_that_holds_a_layer_loses_it_to_rows_of_others() -> None:
    """8 KiB: keyword spotting by rows was simulated with 1.05 of whole tensors' cycles."""
    assert 1.03 < ratio(Joint(), U575) < 1.12


def test_weights_that_a_cache_holds_are_waited_for_once() -> None:
    form = Form.whole(KWS.operator("conv2d2"), KWS)
    kernel = named("cortex_m.conv2d", form, U575)
    waits = cycles_of_step(kernel, form, U575) - kernel.cycles(form)
    assert waits == pytest.approx(kernel.table_bytes(form) * 4 / 16)


def test_weights_a_little_larger_than_a_cache_are_partly_waited_for_again() -> None:
    """Shares of 3×3 convolutions of 36, 42, 45 and 56 channels, as simulated on a Pico."""
    shares = [Waits.of(PICO).missed(size) for size in (12240, 16548, 18945, 29120)]
    assert shares == pytest.approx([0, 0.23, 0.6, 1], abs=0.04)


def test_operators_take_what_the_plan_takes() -> None:
    plan = planned(Joint(), L4R5)
    found = cycles_by_operator(plan, KWS, L4R5)
    assert found.keys() == {op.name for op in KWS.operators}
    assert sum(found.values()) == modelled_cycles(plan, KWS, L4R5)
    op = KWS.operators[1].name
    rows = [step for step in plan.tracks[0].steps if isinstance(step, Compute) and step.op == op]
    assert len(rows) == KWS.tensors[KWS.operators[1].output].shape[0]
    alone = replace(plan, tracks=(replace(plan.tracks[0], steps=tuple(rows)),))
    assert cycles_by_operator(alone, KWS, L4R5) == {op: found[op]}


def test_loops_count_their_passes() -> None:
    """Channels one by one cost more, and not a hundred times more."""
    graph = nets.fig1_block()
    whole, looped = (
        modelled_cycles(each.plan(graph, L4R5), graph, L4R5)
        for each in (Ordinary(), Partial(channels=1))
    )
    assert whole < looped < 4 * whole


def test_a_plan_without_c_takes_for_ever() -> None:
    graph = nets.fig1_block()
    plan = Ordinary().plan(graph, L4R5)
    (track,) = plan.tracks
    steps = tuple(replace(step, kernel="") for step in track.steps if isinstance(step, Compute))
    spoilt = replace(plan, tracks=(replace(track, steps=steps),))
    assert modelled_cycles(spoilt, graph, L4R5) == inf


# --- operators by themselves, weights in a window

CARD = board_named("stm32f746g_sd")
PAPER = replace(CARD, card=replace(CARD.card, timing="paper"))


@cache
def small() -> Graph:
    return (
        Chain("net", (16, 16, 8))
        .conv(16, 3, 1, 1)
        .conv(16, 3, 1, 1, depthwise=True)
        .maximum(2, 2)
        .dense(10)
        .graph(np.random.default_rng(7))
    )


@cache
def swapped() -> Plan:
    return Swap().plan(small(), CARD)


def test_every_operator_takes_the_cycles_of_the_kernel_that_plans_name() -> None:
    """Cut into rows and tiles they take a little more, as noted; depthwise products take longer."""
    graph, plan, found = small(), swapped(), alone_us(small(), CARD)
    assert set(found) == {op.name for op in graph.operators}
    for name, cycles in cycles_by_operator(plan, graph, CARD).items():
        us = cycles / CARD.clock_hz * 1e6
        assert found[name] == pytest.approx(us, rel=0.1), name
        assert noted_us(plan, graph)[name] == pytest.approx(max(us, found[name]), rel=0.01)
    two = noted_us(Swap(frames=2).plan(graph, CARD), graph)
    assert sum(two.values()) == pytest.approx(sum(found.values()), rel=0.1), "of one frame of two"
    said = check(plan, graph, CARD)
    overhead = 100 * (said["makespan_us"] / sum(found.values()) - 1)
    assert 0 <= said["bound_overhead_pct"] <= said["overhead_pct"]
    assert said["overhead_pct"] == pytest.approx(overhead, abs=1e-3)
    dense, own = (found[op.name] / op.macs(graph.tensors) for op in graph.operators[:2])
    assert own > 3 * dense


def test_tiles_that_an_end_cuts_off_take_what_they_make() -> None:
    """Nine tiles of 6x6 pixels name 18x18 of 16x16; elements that are made are what is timed."""
    plan = Swap(scheduler="swapnn", buffer_bytes=1024).plan(small(), CARD)
    cycles, noted = cycles_by_operator(plan, small(), CARD), noted_us(plan, small())
    for name, made in {"conv2d0": (16 / 18) ** 2, "dense3": 1}.items():
        assert noted[name] == pytest.approx(made * cycles[name] / CARD.clock_hz * 1e6, rel=1e-4)


@pytest.mark.parametrize("board", [PAPER, replace(CARD, kernels="portable"), board(1 << 16)])
def test_otherwise_a_product_takes_what_the_board_says(board: Hardware) -> None:
    """In the paper's setting, with portable kernels, on another core."""
    assert alone_us(small(), board) == {}


def test_plans_and_their_times_have_the_same_work() -> None:
    graph, plan, rates = small(), swapped(), Rates.of(CARD)
    us = alone_us(graph, CARD)

    def work_us(parts: tuple[TiledLayer, ...]) -> float:
        return rates.compute_us(sum(layer.work for layer in parts))

    assert work_us(timed(layers(graph), us, rates)) == pytest.approx(sum(us.values()))
    found = summarized(simulate(plan, graph, CARD), graph, CARD)
    assert found["compute_us"] == pytest.approx(sum(noted_us(plan, graph).values()))
    assert found["makespan_us"] >= float(dict(plan.notes)["bound_us"])
    flat = summarized(simulate(replace(plan, notes=()), graph, CARD), graph, CARD)
    assert flat["compute_us"] == pytest.approx(work_us(layers(graph)))


def test_a_plan_keeps_the_times_that_it_was_made_for() -> None:
    """In the setting of the paper it has none."""
    graph, tiles = small(), Swap(scheduler="swapnn", buffer_bytes=8192)
    assert set(noted_us(swapped(), graph)) == set(alone_us(graph, CARD))
    assert KERNELS_US not in dict(Swap().plan(graph, PAPER).notes)
    assert KERNELS_US in dict(tiles.plan(graph, CARD).notes)
    assert note_us({}, graph) == ()
    some = replace(swapped(), notes=note_us({graph.operators[1].name: 5.0}, graph))
    assert noted_us(some, graph) == {graph.operators[1].name: 5.0}


@pytest.mark.parametrize(
    "text", ["1.0 2", "1 2 3 x", "1 2 3 nan", "1 2 3 -4", "1 2 3 inf", "1 2 3 4 5"]
)
@pytest.mark.parametrize(("note", "number"), [(KERNELS_US, 4), (ALONE_US, 1)])
def test_times_that_are_none_are_damage(note: str, number: int, text: str) -> None:
    plan = replace(swapped(), notes=((note, text),))
    with pytest.raises(PlanError, match=f"{note} is damaged: it should have times, {number}"):
        simulate(plan, small(), CARD)
