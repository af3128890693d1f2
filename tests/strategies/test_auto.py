"""Plans for a newcomer: one that fits, or a line that says which and why; where nothing fits, a
bound that no plan that computes nothing twice is below, advice, and what other strategies need."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline import verdict
from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.kernels import modelled
from pipeline.plan.cost import cost, timeline
from pipeline.plan.fit import fit, roomy
from pipeline.plan.vocabulary import Plan
from pipeline.schedules.lower import needed
from pipeline.search.lower_bound import lower_bound
from pipeline.strategies.auto import Auto
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.lacking import lacking, ways
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.others import others, quick_planners
from pipeline.strategies.partial import Partial
from tests.codegen.support import uno
from tests.graphs import random_graph
from tests.search.every_order import given_to, least, units_of
from tests.strategies import nets
from tests.strategies.chains import board, mnist
from tests.strategies.nets import Net
from tests.strategies.swap.nets import random_chain
from tests.strategies.test_ordinary import BOARD
from tests.strategies.zoo import network as zoo
from tests.targets.cortex_m import board_named
from tests.tiers import quick

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


def test_several_outputs() -> None:
    both = replace(KWS, outputs=(KWS.operators[-2].output, KWS.output))
    assert planned(both, L4R5)[2]


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
    least, why, fits = planned(graph, replace(small, sram_bytes=board.stack_reserve_bytes + 100))
    assert least.on_card and not fits and ", the least found, where" in why
    assert planned(graph, board)[0].strategy == "ordinary"


def test_for_memory_it_is_what_needs_least() -> None:
    plan = Auto(objective="memory").plan(KWS, L4R5)
    assert replace(plan, notes=()) == replace(Joint().plan(KWS, L4R5), notes=())


def test_no_strategy_has_code() -> None:
    wide = replace(KWS.tensors["input"], dtype=KWS.tensors["input"].dtype.parse("int32"))
    graph = replace(KWS, tensors={**KWS.tensors, "input": wide})
    with pytest.raises(ThimbleError, match="no strategy has code for net on nucleo_l4r5zi"):
        Auto().plan(graph, L4R5)


def bound(graph: Graph, streamed: bool = False) -> float:
    return lower_bound(graph, needed(graph), streamed).bytes


def held(strategy: Strategy, graph: Graph, streamed: bool) -> float:
    plan = strategy.plan(graph, replace(BOARD, streams_input=streamed))
    return max(moment.live_bytes for moment in timeline(plan))


@pytest.mark.parametrize("streamed", [False, True], ids=["held", "streamed"])
@pytest.mark.parametrize("seed", quick(3, range(120), ci=1))
def test_no_plan_of_a_random_network_holds_less(seed: int, streamed: bool) -> None:
    """By rows, whole, or by channels one by one."""
    graph = random_graph(seed)
    least = bound(graph, streamed)
    for strategy in (Joint(), Ordinary(), Partial(), Partial(channels=1)):
        assert least <= held(strategy, graph, streamed), strategy.name


@pytest.mark.parametrize(
    ("graph", "least", "streamed"),
    [
        (lambda: nets.ds_cnn((64,) * 5), 2_926, 2_496),
        pytest.param(lambda: zoo("resnet8"), 4_253, 2_176, marks=pytest.mark.slow),
        pytest.param(lambda: zoo("mobilenet_v1_vww"), 27_648, 4_608, marks=pytest.mark.slow),
    ],
    ids=["ds_cnn", "resnet8", "mobilenet_v1_vww"],
)
def test_networks_of_mlperf_tiny(graph: Callable[[], Graph], least: float, streamed: float) -> None:
    network = graph()
    assert (bound(network), bound(network, True)) == (least, streamed)


def test_a_dense_layer_holds_its_inputs_or_its_sums() -> None:
    """40 inputs; or 5 sums of 4 bytes each, which take inputs one by one as they stream in."""
    net = Net((1, 1, 40))
    net.dense("input", 5)
    graph = net.graph()
    assert (bound(graph), bound(graph, True)) == (40, 5)
    net = Net((1, 1, 3))
    net.dense(net.conv("input", 40), 5)
    assert bound(net.graph()) == 20


def test_it_is_no_more_than_the_least_over_all_orders_of_pixels() -> None:
    net = Net((4, 1, 1))
    net.conv(net.conv("input", 1, 3), 1, 3)
    first, second = net.operators
    units = [*units_of(first, net.tensors), *units_of(second, net.tensors)]
    least_bytes = least(units, given_to(first, net.tensors)) / 2
    assert bound(net.graph()) == 4 <= least_bytes == 5


SMALL_KWS = nets.ds_cnn((8,))


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
    found = said(Joint(), SMALL_KWS, replace(L4R5, sram_bytes=2_560))
    needed, least = found["needed_bytes"], found["lower_bound_bytes"]
    assert isinstance(needed, int) and isinstance(least, float) and 490 <= least < needed - 2048
    assert str(found["advice"]).startswith("try ")
    assert ", strategy=joint strategy.extra_macs=0.1, fewer channels" in str(found["advice"])
    plan = Joint().plan(SMALL_KWS, L4R5)
    report = verdict.check(plan, SMALL_KWS, L4R5)
    found = lacking(report, plan, SMALL_KWS, L4R5)
    assert found["lower_bound_bytes"] == least
    assert found["above_bound_pct"] == round(100 * (report["pmu_bytes"] / least - 1), 1) > 0
    repeating = replace(plan, notes=(*plan.notes, ("repeated_macs_pct", 1.0)))
    assert lacking(report, repeating, SMALL_KWS, L4R5) == {}
    plan = Ordinary().plan(SMALL_KWS, L4R5)
    assert lacking(verdict.check(plan, SMALL_KWS, L4R5), plan, SMALL_KWS, L4R5) == {}
    flash = replace(L4R5, flash_bytes=200)
    report = verdict.check(plan, SMALL_KWS, flash)
    assert report["status"] == "infeasible" and lacking(report, plan, SMALL_KWS, flash) == {}


@pytest.mark.ci
def test_streaming_repeated_work_and_narrower_sums_are_advised_where_they_help() -> None:
    """The input has 490 B: no more can be saved by not holding it."""
    assert advice(Joint(), SMALL_KWS, 490).startswith("hardware.streams_input=true, ")
    assert advice(Ordinary(), SMALL_KWS, 490) == "hardware.streams_input=true with strategy=auto"
    assert "streams" not in advice(Joint(), SMALL_KWS, 491)
    assert "streams" not in advice(Joint(), SMALL_KWS, 1, replace(L4R5, streams_input=True))
    assert advice(Joint(), SMALL_KWS, 1e6) == "strategy=joint strategy.extra_macs=0.1"
    assert "extra_macs" not in advice(Ordinary(), SMALL_KWS, 1e6)  # strategy=auto comes first
    net = nets.Net((8, 8, 4))
    net.dense(net.conv(net.conv("input", 8), 4), 3)
    assert "extra_macs" not in advice(Joint(), net.graph(), 1e6)
    graph = nets.fig1_block()
    assert "strategy.accumulator_bits=16" in advice(Partial(), graph, 1e6)
    assert "accumulator_bits" not in advice(Partial(accumulator_bits=8), graph, 1e6)
    assert "accumulator_bits" not in advice(Joint(), SMALL_KWS, 1e6)


def test_a_card_is_advised_for_networks_that_can_be_swapped() -> None:
    chain, card = random_chain(4), board_named("stm32f746g_sd")
    assert "a board with a card" in advice(Joint(), chain, 1e6, hopeless=True)
    assert "card" not in advice(Joint(), chain, 1e6)
    assert "a board with a card" not in advice(Joint(), chain, 1e6, card, hopeless=True)
    branches = nets.fig1_block()  # a residual sum
    assert "a board with a card" in advice(Joint(), branches, 1e6, hopeless=True)
    assert "card" not in advice(Ordinary(), mnist().graph(), 1e6, hopeless=True)  # 4 bits


UNO = replace(board(), core="avr", sram_bytes=2048, stack_reserve_bytes=64)


@pytest.mark.ci
def test_each_needs_what_its_own_run_would_say() -> None:
    graph = mnist().graph()
    found = {row["strategy"]: row for row in others(Herringbone().plan(graph, UNO), graph, UNO)}
    assert set(found) == {"joint", "ordinary", "partial", "patch", "replace", "single_transpose"}
    assert "streams in" in found["patch"]["why"]
    assert found["joint"]["pmu_bytes"] < found["replace"]["pmu_bytes"]
    for strategy in (Ordinary(), Partial()):
        plan = strategy.plan(graph, UNO)
        said = verdict.check(plan, graph, UNO)
        (sram,) = (each for each in said["memories"] if each["name"] == "sram")
        assert found[strategy.name] == {
            "strategy": strategy.name, "pmu_bytes": said["pmu_bytes"],
            "needed_bytes": sram["needed_bytes"], "fits": said["status"] == "ok",
            "modelled_us": modelled(plan, graph, UNO)["modelled_us"],
        }  # fmt: skip
    assert not found["ordinary"]["fits"] and found["replace"]["fits"]


def test_a_strategy_without_a_plan_says_why_and_slow_ones_are_not_tried() -> None:
    graph = zoo("autoencoder")
    found = {row["strategy"]: row for row in others(Ordinary().plan(graph, BOARD), graph, BOARD)}
    assert "cannot run in 4x4 patches" in found["patch"]["why"] and "ordinary" not in found
    assert found["joint"]["pmu_bytes"] < 768
    assert {each.name for each in quick_planners(10**12)} == {"ordinary", "partial"}
    assert "herringbone" in {each.name for each in quick_planners(94_928)}
    assert "joint" in {each.name for each in quick_planners(12_501_632)}
    assert not {"auto", "swap"} & {each.name for each in quick_planners(1)}
