"""Kernels asked for by name, for speed alone: within a budget of flash and room for scratch."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import Form, modelled_cycles, named, quicker
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan
from pipeline.search.quicker import Option, chosen_of, options_of
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.layers import image_network
from tests.codegen.cortex_m.layers import network as by_row
from tests.codegen.cortex_m.support import core, twin
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.graphs import Chained, Net
from tests.tiers import quick


def network() -> Graph:
    """Two layers for Winograd, of which one needs more scratch than flash; one for others."""
    return Chained(Net((12, 12, 8))).conv(8).conv(32, stride=(2, 2)).conv(32).graph()


def board(**changes: object) -> Hardware:
    given: dict[str, object] = {"stack_reserve_bytes": 0, "weights_in": "flash", **changes}
    return replace(core(), **given)  # type: ignore[arg-type]


def kernels_of(plan: Plan) -> list[str]:
    return [step.kernel for step in plan.tracks[0].steps if isinstance(step, Compute)]


FAST = Ordinary(objective="latency")


def test_only_speed_asks() -> None:
    graph, hardware = network(), board()
    usual, fast = Ordinary().plan(graph, hardware), FAST.plan(graph, hardware)
    verify(fast, graph)
    assert kernels_of(usual) == ["cortex_m.conv2d"] * 3
    assert kernels_of(fast) == ["cortex_m.winograd", "cortex_m.conv2d", "cortex_m.winograd"]
    cycles = [modelled_cycles(plan, graph, hardware) for plan in (usual, fast)]
    assert cycles[1] < 0.76 * cycles[0]
    assert arena_bytes(fast) > arena_bytes(usual)
    assert kernels_of(Joint(objective="latency").plan(graph, hardware)) == kernels_of(fast)


def test_each_budget_of_flash_is_kept() -> None:
    """From one that leaves nothing to one that suffices for all."""
    graph, hardware = network(), board()
    _, least = options_of(graph, hardware, graph.operators)
    found = []
    for more in range(0, 80_000, 15_000):
        limited = replace(hardware, flash_bytes=int(least) + more)
        plan = FAST.plan(graph, limited)
        verify(plan, graph)
        assert taken(plan, graph, hardware) <= more
        found.append(modelled_cycles(plan, graph, hardware))
    assert found == sorted(found, reverse=True)
    assert found[0] == modelled_cycles(Ordinary().plan(graph, hardware), graph, hardware)
    assert found[-1] == modelled_cycles(FAST.plan(graph, hardware), graph, hardware)
    assert len(set(found)) > 2


def taken(plan: Plan, graph: Graph, hardware: Hardware) -> float:
    """Return the bytes of tables, beside those of the usual kernels."""

    def tables(each: Plan) -> float:
        forms = [
            (Form.of(s, each.buffer, graph), s.kernel)
            for s in each.tracks[0].steps
            if isinstance(s, Compute)
        ]
        return sum(named(kernel, form, hardware).table_bytes(form) for form, kernel in forms)

    return tables(plan) - tables(Ordinary().plan(graph, hardware))


def test_joint_has_it_within_its_limit_only() -> None:
    graph, hardware = network(), board()
    usual = int(arena_bytes(Ordinary().plan(graph, hardware)))
    plan = Joint(objective="latency", arena_limit_bytes=usual).plan(graph, hardware)
    assert arena_bytes(plan) <= usual
    assert not any("winograd" in kernel for kernel in kernels_of(plan))


def test_weights_elsewhere_stay_as_they_are() -> None:
    for where in ("flash", "sram"):
        hardware = board(weights_in=where)
        found = kernels_of(FAST.plan(network(), hardware))
        assert ("cortex_m.winograd" in found) == (where == "flash")


@pytest.mark.parametrize("seed", range(20))
def test_choices_fit_and_no_more_would(seed: int) -> None:
    rng = np.random.default_rng(seed)
    options = [Option(f"op{n % 3}", f"k{n}", *rng.uniform(1, 100, 2).tolist(), 0) for n in range(7)]
    flash = float(rng.uniform(10, 200))
    chosen = chosen_of(options, flash)
    assert sum(each.flash for each in chosen) <= flash
    assert len({each.output for each in chosen}) == len(chosen)
    saved, spent = sum(each.saved for each in chosen), sum(each.flash for each in chosen)
    known = {each.output: each for each in chosen}
    for each in options:
        before = known.get(each.output, Option(each.output, "", 0.0, 0.0, 0))
        assert each.saved <= before.saved or spent + each.flash - before.flash > flash
    groups = [[o for o in options if o.output == f"op{n}"] + [None] for n in range(3)]
    best = max(
        sum(o.saved for o in each if o)
        for each in product(*groups)
        if sum(o.flash for o in each if o) <= flash
    )
    assert saved >= 0.5 * best


def test_who_is_asked_for_is_faster() -> None:
    graph = network()
    form = Form.whole(graph.operators[0], graph)
    found = quicker(form, board())
    assert {each.name for each in found} >= {"cortex_m.winograd", "cortex_m.winograd_live32"}
    assert quicker(Form.whole(graph.operators[1], graph), board()) == ()


# --- kernels with less scratch where a board has no room for that of the fastest


def planned(graph: Graph, arena: int = 1 << 20) -> Plan:
    """At least memory, on a board that leaves ``arena`` bytes."""
    board = core()
    board = replace(board, sram_bytes=arena + board.stack_reserve_bytes)
    return Joint().plan(graph, board)


def portable(plan: Plan) -> set[str]:
    """Operators that are computed by kernels that need no scratch since they widen nothing."""
    steps = (step for step in plan.tracks[0].steps if isinstance(step, Compute))
    return {step.op for step in steps if step.kernel in ("int8.conv2d", "int8.dense")}


@pytest.mark.parametrize("seed", quick(0, range(12), ci=1))
def test_only_what_has_no_room_is_slower(seed: int, tmp_path: Path) -> None:
    graph = (image_network, by_row)[seed % 2](seed)
    wide = planned(graph)
    most, least, given = arena_bytes(wide), arena_bytes(planned(graph, 1)), frames(graph, 2)
    assert not portable(wide) and least < most
    before = most
    for arena in map(int, np.linspace(most - 1, least, 2)):
        plan = planned(graph, arena)
        verify(roomy(plan), graph)
        assert arena_bytes(plan) <= before
        equal(twin(tmp_path / f"{arena}", graph, plan)(given), graph.evaluate(given))
        before = arena_bytes(plan)
    assert len(portable(planned(graph, most - 1))) < len(portable(planned(graph, 1)))
