"""Plans of partial execution: proved, run, and no larger than was searched for; searches against
all derivations by the published rules, ordinary execution, and Pex's own figures to the byte."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.calibrate import calibrated, needs_calibration, rounds
from pipeline.plan.cost import cost
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Clear, Compute, Loop, Plan
from pipeline.schedules.channels import Channels
from pipeline.schedules.lower import needed
from pipeline.search.channels.search import Best, Rules, Search, search
from pipeline.search.moves.channels import ByChannels, loops
from pipeline.search.view.whole import View
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.int8.support import frames
from tests.strategies import nets
from tests.strategies.chains import board, mnist
from tests.strategies.nets import Net, loopable
from tests.strategies.partial.brute import Brute, peak_of, runs
from tests.strategies.proving import exact
from tests.strategies.test_ordinary import BOARD
from tests.tiers import quick

FIGURE_1 = nets.fig1_block()


def proved(graph: Graph, strategy: Partial) -> tuple[float, int]:
    """Peak and arena of the plan, which is verified and gives exactly the graph's output."""
    plan = strategy.plan(graph, BOARD)
    assert not exact(plan, graph).report.recomputed
    assert not any(b.extent[0] % (b.bits // 4) for b in plan.buffers if b.memory == "sram")
    found = cost(plan, graph, BOARD)
    return found.pmu_bytes, found.arena_bytes


def view_of(graph: Graph) -> View:
    return View.of(graph.tensors, graph.inputs, needed(graph), *graph.outputs)


@pytest.mark.parametrize("seed", quick(9, range(120), ci=21))
def test_random_networks_are_exact(seed: int) -> None:
    """32 bits are ordinary execution; the arena is the peak that was sought, and alignment."""
    graph, channels = nets.loopable(seed, 8), (0, 1, 3)[seed % 3]
    best = search(Rules(view_of(graph), 32, channels or 1), "exact", 10**6)
    assert best
    peak, arena = proved(graph, Partial(channels=channels))
    aligned = 3 * best.accumulated  # what addresses of 32-bit accumulators may cost
    assert peak <= best.peak / 2 <= arena <= best.peak / 2 + aligned


def test_loops_are_as_wide_as_the_peak_allows() -> None:
    graph = nets.ds_cnn((64,) * 5)
    best, found = Partial().proposed(view_of(graph))
    for n, part in enumerate(found):
        if isinstance(part, Channels) and part.at_once < part.channels:
            wider = [*found[:n], replace(part, at_once=part.at_once + 1), *found[n + 1 :]]
            assert peak_of(wider, view_of(graph), 32) > best.peak
    assert any(part.at_once > 1 for part in loops(found))


def test_set_channels_count() -> None:
    """Figure 1's block, 12 of 144 channels at once: 12 times two rings; a last pass is smaller."""
    assert proved(FIGURE_1, Partial(channels=12))[0] == 13 * 13 * (24 + 4 * 24 + 2 * 12)
    plan = Partial(channels=50).plan(FIGURE_1, BOARD)
    (loop,) = (step for step in plan.tracks[0].steps if isinstance(step, Loop))
    assert loop.count == 3 and exact(plan, FIGURE_1)


@pytest.mark.ci
def test_alignment() -> None:
    aligned = replace(BOARD, alignment_bytes=8)
    plan = Partial().plan(FIGURE_1, aligned)
    assert all(b.extent[0] % 16 == 0 for b in plan.buffers if b.memory == "sram")
    assert 20_618 <= cost(plan, FIGURE_1, aligned).arena_bytes <= 20_618 + 8 * 5
    exact(plan, FIGURE_1)


def narrow(graph: Graph, bits: int, channels: int = 0) -> tuple[Plan, Plan]:
    """The plan before and after its accumulators are calibrated on three frames."""
    plan = Partial(accumulator_bits=bits, channels=channels).plan(graph, BOARD)
    return plan, calibrated(plan, graph, frames(graph, 3, 3))


@pytest.mark.parametrize("bits", quick(0, [8, 16], ci=1))
def test_narrow_accumulators_round(bits: int) -> None:
    graph = FIGURE_1
    before, after = narrow(graph, bits)
    assert needs_calibration(before) and rounds(after) and not needs_calibration(after)
    with pytest.raises(ThimbleError, match="calibrate the plan"):
        verify(before, graph)
    assert not verify(after, graph).recomputed
    frame = np.random.default_rng(9).integers(-128, 128, (13, 13, 24))
    difference = interpret(after, graph, frame).output - graph.evaluate(frame[None])[0]
    assert np.abs(difference).max() <= 10
    assert cost(after, graph, BOARD).pmu_bytes == 13 * 13 * (24 + 24 * bits // 8 + 2)
    (loop,) = (step for step in before.tracks[0].steps if isinstance(step, Loop))
    assert [s.partial for s in loop.body if isinstance(s, Compute)] == [False, False, True]


def test_sixteen_bits_that_hold_every_sum_are_exact() -> None:
    """Weights of 1 and 0 over 8 channels: no sum is beyond 8 * 128."""
    net = Net((5, 5, 2))
    net.conv(net.depthwise(net.conv("input", 8)), 2)
    for name, values in net.constants.items():
        net.constants[name] = values & 1
    graph = net.graph()
    plan = Partial(accumulator_bits=16).plan(graph, BOARD)
    assert any(isinstance(step, Clear) for step in plan.tracks[0].steps)
    assert not needs_calibration(plan) and exact(plan, graph)


def test_streamed_image_is_pooled_on_its_way() -> None:
    """4-bit tensors and an input that never exists whole."""
    graph = mnist().graph()
    assert not exact(Partial().plan(graph, board(sram_bytes=1 << 12)), graph).report.recomputed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"search": "best"}, "pex or exact"),
        ({"accumulator_bits": 12}, "8, 16 or 32"),
        ({"channels": -1}, "strategy.channels=-1"),
    ],
)
def test_mistaken_options(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ThimbleError, match=words):
        Partial(**options)


WIDTHS = (8, 16, 32)
MISSED = 172
"""The seed of a network of which the published algorithm finds more than the least."""


def found(
    graph: Graph, bits: int, kind: Search = "exact", given: bool = False, most: int = 10**6
) -> Best:
    best = search(Rules(view_of(graph), bits, given=given), kind, most)
    assert best
    return best


@pytest.mark.parametrize("first", quick(1, range(0, 1300, 25), ci=2))
def test_exact_equals_every_derivation(first: int) -> None:
    for seed in range(first, first + 25):
        graph, bits = loopable(seed), WIDTHS[seed % 3]
        best, published = found(graph, bits), found(graph, bits, "pex")
        assert (best.peak / 2, best.accumulated) == Brute(graph, bits).optimum(), seed
        assert (published.peak, published.accumulated) >= (best.peak, best.accumulated), seed


def test_never_above_ordinary() -> None:
    for seed in range(30):
        graph = loopable(seed, 9)
        ordinary = cost(Ordinary().plan(graph, BOARD), graph, BOARD).pmu_bytes
        best, given = found(graph, 32).peak, found(graph, 32, given=True).peak
        whole = view_of(graph)
        assert best <= given <= whole.peak(range(len(whole.tasks))), seed
        assert max(best, found(graph, 32, "pex").peak) / 2 <= ordinary, seed


@pytest.mark.ci
def test_too_many_states_still_give_a_plan() -> None:
    """Eight branches of two convolutions: too many orders to look at all."""
    net = Net((4, 4, 8))
    x = net.conv("input", 8)
    ends = [net.conv(net.conv(x, 16), 8) for _ in range(8)]
    while len(ends) > 1:
        ends = [net.add(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True)]
    graph = net.graph()
    assert search(Rules(view_of(graph), 8), "exact", 500) is None
    ordinary = cost(Ordinary().plan(graph, BOARD), graph, BOARD)
    assert cost(Partial().plan(graph, BOARD), graph, BOARD).pmu_bytes <= ordinary.pmu_bytes


def test_published_algorithm_can_miss_the_least_peak() -> None:
    graph, bits = nets.loopable(MISSED, 9), WIDTHS[MISSED % 3]
    assert found(graph, bits, "pex").peak > found(graph, bits).peak


NETWORKS: dict[str, Callable[[], Graph]] = {
    "figure 1": nets.fig1_block,
    "MobileNetV2 224": lambda: nets.mobilenet_v2(224, weights=False),
    "MobileNetV2 172": lambda: nets.mobilenet_v2(172, weights=False),
    "MobileNetV2 160": lambda: nets.mobilenet_v2(160, weights=False),
    "RES-15": nets.res15,
    "MicroNets-KWS-L base": nets.micronet_kws_l,
    "DS-CNN S": lambda: nets.ds_cnn((64,) * 5),
    "EfficientNet-B0 160": nets.efficientnet_b0,
}
network = cache(lambda name: NETWORKS[name]())

ROWS = [
    ("figure 1", 8, 8_450, 1),
    ("MobileNetV2 224", 8, 376_320, 3),
    ("MobileNetV2 224", 16, 577_024, 2),
    ("MobileNetV2 172", 8, 221_880, 3),
    ("MobileNetV2 160", 32, 307_200, 0),
    ("MobileNetV2 160", 16, 294_400, 2),
    ("MobileNetV2 160", 8, 192_000, 3),
    ("RES-15", 8, 44_590, 6),
    ("MicroNets-KWS-L base", 32, 69_000, 0),
    ("MicroNets-KWS-L base", 16, 69_000, 1),
    ("MicroNets-KWS-L base", 8, 65_750, 2),
    ("DS-CNN S", 8, 16_000, None),
    ("EfficientNet-B0 160", 8, 307_200, 0),
]
"""Peak in bytes by accumulator bits, and accumulating layers; of RES-15 both are the least."""


@pytest.mark.parametrize(("name", "bits", "peak", "layers"), ROWS)
def test_published_peak(name: str, bits: int, peak: int, layers: int | None) -> None:
    """In no more states than a fifth of a second is enough for. With one configuration a state, the
    published algorithm can accumulate for nothing: MicroNets with 16 bits, as in table 4."""
    published, exact = (found(network(name), bits, kind, most=5_000) for kind in ("pex", "exact"))
    assert published.peak == exact.peak == 2 * peak
    if layers is not None:
        assert published.accumulated == layers >= exact.accumulated
    assert (name, bits) != ("MicroNets-KWS-L base", 16) or exact.accumulated == 0


@pytest.mark.parametrize("name", NETWORKS)
def test_schedules_replay_at_any_width(name: str) -> None:
    """The replay finds the peak that the search did."""
    view = view_of(network(name))
    for bits in WIDTHS:
        best, schedule = ByChannels(accumulator_bits=bits).proposed(view)
        peak = peak_of(schedule, view, bits)
        assert runs(schedule, view) and max(peak, view.sizes[0]) == best.peak


def test_squeeze_in_place_is_what_makes_efficientnets_row() -> None:
    """307,200 B; without overwriting what is squeezed it would be 313,600."""
    graph = network("EfficientNet-B0 160")
    view = view_of(graph)
    tasks = zip(view.operators, view.tasks, strict=True)
    assert any(task.over for op, task in tasks if "multiply" in op.name)
