"""Plans for a newcomer: one that fits if there is one, and one line that says which and why."""

from dataclasses import replace

import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import cost
from pipeline.plan.fit import fit, roomy
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.auto import Auto
from pipeline.strategies.joint import Joint
from tests.codegen.support import uno
from tests.strategies import nets
from tests.strategies.chains import mnist
from tests.strategies.swap.nets import random_chain
from tests.targets.cortex_m import board_named

L4R5 = board_named("nucleo_l4r5zi")
KWS = nets.ds_cnn((16,) * 2)


def planned(graph: Graph, board: Hardware) -> tuple[Plan, str, bool]:
    """The plan, for which there is code, why, and whether it fits."""
    plan = Auto().plan(graph, board)
    assert generate(graph, plan, board, {})
    found = cost(roomy(plan), graph, board)
    return plan, str(dict(plan.notes)["auto"]), fit(plan, found, board).fits


def test_whole_tensors_where_they_fit() -> None:
    plan, why, fits = planned(KWS, L4R5)
    assert plan.strategy == "ordinary" and fits
    assert why == "ordinary, an arena of 4,192 B where 653,312 are left; nothing is surely faster"


@pytest.mark.ci
def test_rows_where_they_do_not() -> None:
    plan, why, fits = planned(KWS, replace(L4R5, sram_bytes=2048 + 3000))
    assert plan.strategy == "joint" and fits
    assert why.startswith("joint, an arena of ")
    assert why.endswith(" B where 3,000 are left; ordinary would need 4,000")


@pytest.mark.ci
def test_nothing_fits_then_the_least_is_said() -> None:
    small = replace(L4R5, sram_bytes=2048 + 700)
    plan, why, fits = planned(KWS, small)
    assert not fits and ", the least found, where 700 are left; " in why
    assert replace(plan, notes=()) == replace(Joint().plan(KWS, small), notes=())


@pytest.mark.parametrize(("weights_in", "chosen"), [("flash", "ordinary"), ("sram", "replace")])
def test_chains_of_few_bits_on_the_uno(weights_in: str, chosen: str) -> None:
    """Pixel by pixel they fit even beside their weights."""
    board = replace(uno(weights_in=weights_in), sram_bytes=2048, stack_reserve_bytes=60)
    plan, why, fits = planned(mnist().graph(), board)
    assert fits and why.startswith(f"{chosen}, ") and plan.strategy.startswith(chosen)


@pytest.mark.ci
def test_a_card_where_nothing_else_fits() -> None:
    board, graph = board_named("stm32f746g_sd"), random_chain(4)
    small = replace(board, sram_bytes=board.stack_reserve_bytes + 1200)
    plan, why, fits = planned(graph, small)
    assert plan.strategy == "joint" and fits and why.startswith("joint, ") and plan.on_card
    assert planned(graph, board)[0].strategy == "ordinary"


def test_for_memory_it_is_what_needs_least() -> None:
    plan = Auto(objective="memory").plan(KWS, L4R5)
    assert replace(plan, notes=()) == replace(Joint().plan(KWS, L4R5), notes=())


def test_no_strategy_has_code() -> None:
    wide = replace(KWS.tensors["input"], dtype=KWS.tensors["input"].dtype.parse("int32"))
    graph = replace(KWS, tensors={**KWS.tensors, "input": wide})
    with pytest.raises(ThimbleError, match="no strategy has code for net on nucleo_l4r5zi"):
        Auto().plan(graph, L4R5)
