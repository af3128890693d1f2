"""Modelled cycles of whole plans: steps of the tape and waits for weights included."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from math import inf

import pytest

from pipeline.hardware import Hardware
from pipeline.kernels import cycles_by_operator, cycles_of_step, modelled_cycles, named
from pipeline.kernels.form import Form
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.cortex_m.bench import without_waits
from tests.codegen.cortex_m.bench_rows import RATIOS
from tests.strategies import nets
from tests.targets.cortex_m import board_named
from tests.tiers import quick

KWS = nets.ds_cnn((64,) * 5)
L4R5, U575 = board_named("nucleo_l4r5zi"), board_named("nucleo_u575zi")
BOARDS = quick(1, [("L4R5", L4R5), ("M4", without_waits(L4R5))])


@cache
def planned(strategy: Strategy, board: Hardware) -> Plan:
    return strategy.plan(KWS, board)


def rows_to_whole(board: Hardware) -> float:
    """Modelled cycles at the least memory, as a ratio to those of whole tensors."""
    whole, rows = (
        modelled_cycles(planned(each, board), KWS, board) for each in (Ordinary(), Joint())
    )
    return rows / whole


@pytest.mark.parametrize(("label", "board"), BOARDS)
def test_rows_to_whole_tensors_as_simulated(label: str, board: Hardware) -> None:
    """Within the error that kernels have, see test_cycles.py."""
    recorded = json.loads(RATIOS.read_text())[f"kws_ref_model, rows, {label}"]
    assert rows_to_whole(board) == pytest.approx(recorded, rel=0.06)


@pytest.mark.parametrize(("label", "board"), BOARDS)
def test_in_place_to_whole_tensors_as_simulated(label: str, board: Hardware) -> None:
    """Weights and code of pixels in place are waited for again and again."""
    whole, in_place = (
        modelled_cycles(planned(each, board), KWS, board) for each in (Ordinary(), Herringbone())
    )
    recorded = json.loads(RATIOS.read_text())[f"kws_ref_model, in place, {label}"]
    assert in_place / whole == pytest.approx(recorded, rel=0.05)


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
    """8 KiB for weights and code: keyword spotting row by row was simulated with 1.05 of the
    cycles of whole tensors."""
    assert 1.03 < rows_to_whole(U575) < 1.12


def test_weights_that_a_cache_holds_are_waited_for_once() -> None:
    form = Form.whole(KWS.operator("conv2d2"), KWS)
    kernel = named("cortex_m.conv2d", form, U575)
    waits = cycles_of_step(kernel, form, U575) - kernel.cycles(form)
    assert waits == pytest.approx(kernel.table_bytes(form) * 4 / 16)


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
