"""Nothing fits: a bound for all, advice that suits, and what other strategies would need."""

from dataclasses import replace

from pipeline import verdict
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.lacking import lacking, ways
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.others import others, quick_planners
from pipeline.strategies.partial import Partial
from tests.strategies import nets
from tests.strategies.chains import board, mnist
from tests.strategies.swap.nets import random_chain
from tests.strategies.test_ordinary import BOARD as PLAIN
from tests.targets.cortex_m import board_named

L4R5 = board_named("nucleo_l4r5zi")
KWS = nets.ds_cnn((8,))


def said(strategy: Strategy, graph: Graph, hardware: Hardware) -> dict[str, object]:
    plan = strategy.plan(graph, hardware)
    report = verdict.check(plan, graph, hardware)
    assert report["status"] == "infeasible"
    return {**report, **lacking(report, plan, graph, hardware)}


def advice(
    strategy: Strategy, graph: Graph, short: float, board: Hardware = L4R5, hopeless: bool = False
) -> str:
    return ", ".join(ways(strategy.plan(graph, board), graph, board, short, hopeless))


def test_advice_of_a_bound_and_in_one_line() -> None:
    tiny = board(sram_bytes=1024)
    found = said(Ordinary(), mnist().graph(), tiny)
    assert found["lower_bound_bytes"] == 88
    assert str(found["where"]).startswith("weights 1,512.5 B + activations 760 B at their peak in ")
    assert str(found["where"]).endswith(
        "; no plan that computes nothing twice holds less than 88 B of activations, for "
        f"{found['lower_bound_at']}"
    )
    assert str(found["advice"]).startswith("try hardware.weights_in=flash, strategy=auto, fewer")
    found = said(Joint(), KWS, replace(L4R5, sram_bytes=2_560))
    needed, least = found["needed_bytes"], found["lower_bound_bytes"]
    assert isinstance(needed, int) and isinstance(least, float) and 490 <= least < needed - 2048
    assert str(found["advice"]).startswith("try ")
    assert ", strategy=joint strategy.extra_macs=0.1, fewer channels" in str(found["advice"])
    plan = Joint().plan(KWS, L4R5)
    report = verdict.check(plan, KWS, L4R5)
    found = lacking(report, plan, KWS, L4R5)
    assert found["lower_bound_bytes"] == least
    assert found["above_bound_pct"] == round(100 * (report["pmu_bytes"] / least - 1), 1) > 0
    repeating = replace(plan, notes=(*plan.notes, ("repeated_macs_pct", 1.0)))
    assert lacking(report, repeating, KWS, L4R5) == {}
    plan = Ordinary().plan(KWS, L4R5)
    assert lacking(verdict.check(plan, KWS, L4R5), plan, KWS, L4R5) == {}
    flash = replace(L4R5, flash_bytes=200)
    report = verdict.check(plan, KWS, flash)
    assert report["status"] == "infeasible" and lacking(report, plan, KWS, flash) == {}


def test_streaming_repeated_work_and_narrower_sums_are_advised_where_they_help() -> None:
    """The input has 490 B: no more can be saved by not holding it."""
    assert advice(Joint(), KWS, 490).startswith("hardware.streams_input=true, ")
    assert advice(Ordinary(), KWS, 490) == "hardware.streams_input=true with strategy=auto"
    assert "streams" not in advice(Joint(), KWS, 491)
    assert "streams" not in advice(Joint(), KWS, 1, replace(L4R5, streams_input=True))
    assert advice(Joint(), KWS, 1e6) == "strategy=joint strategy.extra_macs=0.1"
    assert "extra_macs" not in advice(Ordinary(), KWS, 1e6)  # strategy=auto comes first
    net = nets.Net((8, 8, 4))
    net.dense(net.conv(net.conv("input", 8), 4), 3)
    assert "extra_macs" not in advice(Joint(), net.graph(), 1e6)
    graph = nets.fig1_block()
    assert "strategy.accumulator_bits=16" in advice(Partial(), graph, 1e6)
    assert "accumulator_bits" not in advice(Partial(accumulator_bits=8), graph, 1e6)
    assert "accumulator_bits" not in advice(Joint(), KWS, 1e6)


def test_a_card_is_advised_for_networks_that_can_be_swapped() -> None:
    chain, card = random_chain(4), board_named("stm32f746g_sd")
    assert "a board with a card" in advice(Joint(), chain, 1e6, hopeless=True)
    assert "card" not in advice(Joint(), chain, 1e6)
    assert "a board with a card" not in advice(Joint(), chain, 1e6, card, hopeless=True)
    branches = nets.fig1_block()  # a residual sum
    assert "a board with a card" in advice(Joint(), branches, 1e6, hopeless=True)
    assert "card" not in advice(Ordinary(), mnist().graph(), 1e6, hopeless=True)  # 4 bits


UNO = replace(board(), sram_bytes=2048, stack_reserve_bytes=64)


def test_each_needs_what_its_own_run_would_say() -> None:
    graph = mnist().graph()
    found = {row["strategy"]: row for row in others(Herringbone().plan(graph, UNO), graph, UNO)}
    assert set(found) == {"joint", "ordinary", "partial", "patch", "replace", "single_transpose"}
    assert "streams in" in found["patch"]["why"]
    assert found["joint"]["pmu_bytes"] < found["replace"]["pmu_bytes"]
    for strategy in (Ordinary(), Partial()):
        said = verdict.check(strategy.plan(graph, UNO), graph, UNO)
        (sram,) = (each for each in said["memories"] if each["name"] == "sram")
        assert found[strategy.name] == {
            "strategy": strategy.name, "pmu_bytes": said["pmu_bytes"],
            "needed_bytes": sram["needed_bytes"], "fits": said["status"] == "ok",
        }  # fmt: skip
    assert not found["ordinary"]["fits"] and found["replace"]["fits"]


def test_a_strategy_without_a_plan_says_why_and_slow_ones_are_not_tried() -> None:
    graph = nets.autoencoder()
    found = {row["strategy"]: row for row in others(Ordinary().plan(graph, PLAIN), graph, PLAIN)}
    assert "cannot run in 4x4 patches" in found["patch"]["why"] and "ordinary" not in found
    assert found["joint"]["pmu_bytes"] < 768
    assert {each.name for each in quick_planners(10**12)} == {"ordinary", "partial"}
    assert "herringbone" in {each.name for each in quick_planners(94_928)}
    assert "joint" in {each.name for each in quick_planners(12_501_632)}
    assert not {"auto", "swap"} & {each.name for each in quick_planners(1)}
