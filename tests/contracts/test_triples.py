"""Networks that some strategy planned and no C was made of, or that ended in a raw exception; and a
sample of the campaign that found them (``python -m tests.campaign``)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.requant import PowerOfTwo
from pipeline.hardware import Hardware
from pipeline.kernels.feeding import feeds
from pipeline.kernels.lacks import lacks
from pipeline.strategies.base import Strategy
from pipeline.strategies.in_place import Herringbone, Replace, SingleTranspose
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from tests.contracts.triples import GOOD, PAIRS, REFUSED, RUNS, TOO_LARGE, Triple, scheduled, tried
from tests.graphs import Chained, Net
from tests.programs import refusal
from tests.strategies.chains import Chain
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

pytestmark = needs_arm


def board(name: str = "host", streams: bool = False) -> Hardware:
    found = board_named(name, streams_input=streams, weights_in="flash")
    return replace(found, sram_bytes=max(found.sram_bytes, 1 << 15))


def of(*shape: int) -> Chained:
    return Chained(Net(shape))


def transposed() -> Graph:
    """Convolution, channels first, flat, dense."""
    net = of(6, 5, 3).conv(4, padding=NONE).rearrange((4, 4, 3), (1, 2, 0)).reshape((48,)).dense(2)
    return passes.applied(net.graph(), ["fold_reshape"])


def meeting() -> Graph:
    net = Net((5, 23, 13))
    first = net.conv(11, (3, 2), padding=(1, 1, 1, 1))
    net.conv(11)
    net.plus(net.conv(11, (1, 1)), first)
    net.mean((5, 24))
    net.dense(3)
    return net.graph()


def low(rows: int, columns: int, channels: int) -> Graph:
    """An image of one row or column, or nearly."""
    net = of(rows, columns, channels).maximum((min(2, rows), 1), stride=(1, 1))
    return net.conv(9, (1, columns), stride=(1, 2), padding=NONE).graph()


NONE = (0, 0, 0, 0)
CHAINS = Herringbone(), Replace(), SingleTranspose()


@dataclass(frozen=True)
class Found:
    """A network that every one of these strategies runs on each of these boards."""

    why: str
    graph: Callable[[], Graph]
    strategies: tuple[Strategy, ...]
    boards: tuple[str, ...] = ("host",)
    streams: tuple[bool, ...] = (False,)


FOUND = [
    Found("channels first before a dense layer", transposed, (*CHAINS, Joint()),
          streams=(False, True)),
    Found("slices with steps",
          of(9, 7, 4).conv(6).rearrange((3, 3, 4), (0, 1, 2), (2, 1, 1), (2, 2, 1)).conv(3).graph,
          (*CHAINS, Joint())),
    Found("a slice over its input is moved element by element",
          of(5, 5, 4).rearrange((5, 5, 4), (1, 0, 2)).rearrange((3, 5, 3), (0, 1, 2), (1, 0, 1))
          .graph, (Herringbone(),)),
    Found("nearest neighbours that are repeated unevenly",
          of(3, 4, 2).lookup().rearrange((8, 7, 2), repeats=(3, 2, 1)).conv(2).graph,
          (Joint(), Ordinary())),
    Found("no kernel makes the mean of a pixel's channels, and a transposed image, row by row",
          of(6, 4, 3).conv(5).reshape((24, 5, 1)).mean((1, 5), stride=(1, 1)).reshape((6, 4, 1))
          .rearrange((4, 6, 1), (1, 0, 2)).conv(2).graph, (Joint(),), streams=(False, True)),
    Found("an AVR's kernels for whole images took a patch for one",
          of(7, 11, 8).conv(12).dense(5).graph, (Patch(rows=1, columns=2),),
          ("arduino", "arduino_mega")),
    Found("rows that only a slice leaves out",
          of(9, 2, 3).conv(3).rearrange((2, 2, 3), (0, 1, 2), (5, 0, 0)).conv(2).graph,
          (Joint(),)),
    Found("a warning about an image of one column", lambda: low(5, 2, 7),
          (Ordinary(), Herringbone()), ("nucleo_f767zi", "nucleo_u575zi")),
    Found("a warning about images of one row", lambda: low(1, 2, 3), (Ordinary(), Herringbone()),
          ("nucleo_f767zi", "nucleo_u575zi")),
    Found("windows in the padding below",
          of(8, 3, 2).conv(2).conv(3, (1, 1), stride=(2, 1), padding=(0, 3, 0, 0)).conv(2, (3, 1))
          .graph, (Joint(),)),
    Found("names in C hid the parameters that say where a patch's rows and columns lie",
          Chain((1, 8, 1), "uint8").conv("one", 2, (1, 1), padding=(1, 0, 1, 1))
          .conv("two", 2, (1, 3), groups=2, stride=(1, 2), padding=(0, 0, 1, 0))
          .conv("three", 1, (1, 2), stride=(1, 2), padding=(0, 1, 0, 0)).dense("dense", 2).graph,
          (Patch(rows=1, columns=4),), ("nucleo_g0b1re",)),
    Found("a variable of a parameter's name is no use of it: no part begins early", meeting,
          (Patch(rows=2, columns=1),), ("nucleo_g0b1re",)),
    Found("for a peak of a few bytes limits were halved for ever between two neighbours",
          Chain((1, 1, 2)).conv("first", 2, (1, 1)).conv("second", 2, (1, 1)).dense("dense", 1)
          .graph, (Joint(extra_macs=0.2),), ("arduino",)),
]  # fmt: skip
EVERY = [case for f in FOUND for case in product([f], f.strategies, f.boards, f.streams)]
FIRST = [next(case for case in EVERY if case[0] is found) for found in FOUND]


@pytest.mark.parametrize(
    ("found", "strategy", "name", "streams"),
    quick(FIRST, EVERY),
    ids=lambda each: getattr(each, "why", None),
)
def test_it_runs(found: Found, strategy: Strategy, name: str, streams: bool) -> None:
    end = tried(Triple(found.graph(), strategy, board(name, streams), ""))
    assert end.kind == RUNS, (found.why, end)


def refused(graph: Graph, strategy: Strategy, hardware: Hardware) -> str:
    return refusal(lambda: scheduled(Triple(graph, strategy, hardware, "")))


def test_a_reshape_of_the_input_is_its_shape() -> None:
    before = of(60).reshape((6, 5, 2)).conv(3).dense(4).graph()
    after = passes.applied(before, ["fold_reshape"])
    assert [op.name for op in after.operators] == ["conv1", "dense2"]
    frames = np.random.default_rng(0).integers(-128, 128, (3, 60))
    assert (after.evaluate(frames.reshape(3, 6, 5, 2)) == before.evaluate(frames)).all()
    for graph in (after, before):
        assert tried(Triple(graph, Joint(), board(streams=True), "")).kind == RUNS


BESIDE = Chain((8, 1, 1), "int8").conv("conv", 3, (2, 1), padding=(0, 0, 0, 1)).dense("dense", 5)
WIDE = Chain((150, 150, 2)).conv("conv", 2, (1, 1)).conv("next", 2, (3, 3)).dense("dense", 3)
REFUSALS = {
    "fewer strategy.rows and .columns": (
        of(8, 7, 2).rearrange((7, 8, 2), (1, 0, 2)).conv(2), Patch(), board()),
    "strategy=herringbone has no C on arduino for conv (Conv2d): ": (
        Chain((5, 5, 4)).conv("conv", 4, groups=2).dense("dense", 3), Herringbone(),
        board("arduino")),
    "(groups=2): use quantize=int8, or another network": (
        Chain((5, 5, 4)).conv("conv", 4, groups=2).dense("dense", 3), Herringbone(),
        board("arduino")),
    "conv has to make 8 bits or more, not uint4: ": (
        Chain((5, 5, 2)).conv("conv", 4), Ordinary(), board("arduino")),
    "kernels of 4-bit networks address an arena of 16 KiB: use quantize=int8": (
        WIDE, Ordinary(), board()),
    "leave strategy.convolve_arriving out": (
        BESIDE, SingleTranspose(convolve_arriving=True), board(streams=True)),
}  # fmt: skip
"""To the right of the last one's image no pixel waits for a piece that never comes."""


@pytest.mark.parametrize("words", REFUSALS)
def test_it_is_refused_at_schedule(words: str) -> None:
    net, strategy, hardware = REFUSALS[words]
    assert words in refused(net.graph(), strategy, hardware)


def test_an_input_that_streams_in_is_read() -> None:
    graph, hardware = of(4, 4, 2).conv(3).graph(), board("arduino", streams=True)
    plan = Joint().plan(graph, hardware)
    (track,) = plan.tracks
    read = tuple(step for step in track.steps if not feeds(step, plan))
    assert len(read) < len(track.steps) and not lacks(plan, graph, hardware)
    said = lacks(replace(plan, tracks=(replace(track, steps=read),)), graph, hardware)
    assert said == "the input image: it streams in, and nothing reads it"


def test_sums_in_loops_of_four_bits_run_or_are_refused() -> None:
    sums = Chain((1, 7, 3), "int8").conv("first", 3, (1, 3)).conv("second", 2, (1, 3))
    graph = sums.dense("dense", 2).graph()
    assert tried(Triple(graph, Partial(search="pex", channels=1), board(), "")).kind in GOOD


@pytest.mark.ci
def test_many_rows_that_outlive_a_part_are_laid_within_seconds() -> None:
    """There are two places for each: all ways are too many."""
    net = Net((23, 1, 11))
    start = net.last
    net.rearrange((23, 1, 8), (0, 1, 2), (0, 0, 0))
    one = net.conv(2)
    net.last = start
    net.rearrange((23, 1, 3), (0, 1, 2), (0, 0, 8))
    net.concat((one, net.like(net.conv(1), one)))
    net.conv(7, (3, 1), padding=(2, 1, 0, 0))
    tight = replace(board("nucleo_f446re", streams=True), sram_bytes=2700)
    strategy = Joint(objective="latency", extra_macs=0.2)
    assert tried(Triple(net.graph(), strategy, tight, "")).kind in GOOD


ONCE_EACH = [number + len(PAIRS) * (number == 134) for number in range(100, 100 + len(PAIRS))]
"""Every strategy with every family of boards; the 134th network alone takes as long as ten."""


@pytest.mark.parametrize("number", quick(3, ONCE_EACH))
def test_a_sample_of_the_campaign(number: int) -> None:
    triple = Triple.drawn(number)
    end = tried(triple)
    assert end.kind in GOOD, (triple.strategy, triple.hardware.name, end)


CAMPAIGNS = [
    *((4, 1272), (5, 1168), (7, 1548), (19, 85)),
    *((4, 1218), (4, 1644), (5, 358), (5, 1406), (5, 1962), (6, 1022)),
    *((15, 179), (15, 436), (15, 878), (15, 1063), (15, 1207)),
]
"""Seeds and numbers. 4: a loop over the only row of an arriving image; a pragma that avr-gcc does
not know; averages of 4 bits over their own sums. 5: a tile of padding alone in a loop of tiles; the
last pass of channels by itself; two C names of one function; an output that overwrites pixels which
a kernel of whole rows still needs. 6: images whose first row nothing needs had the place of another
image. 7: rows kept that were never made. 15: a tile of one part of a concatenation; a row of one
tap a column; an image one pixel wide; kernels of a Thumb, and of whole rows, that follow no step's
order."""


@pytest.mark.parametrize(("seed", "number"), quick(3, CAMPAIGNS))
def test_what_campaigns_found(seed: int, number: int) -> None:
    assert tried(Triple.drawn(number, seed)).kind == RUNS


def test_the_campaign_of_seed_16_found_patches_that_need_nothing_of_a_concatenated_part() -> None:
    assert tried(Triple.drawn(1892, 16)).kind == TOO_LARGE


def test_the_campaign_of_seed_9_found_lists_of_moves_too_long_for_an_avr() -> None:
    end = tried(Triple.drawn(1962, 9))
    assert end.kind == REFUSED and "its permutations: an array on an AVR has at most" in end.said


@pytest.mark.parametrize("board_name", ["host", "arduino"])
def test_sums_beyond_32_bits_are_refused_before_c_is_made(board_name: str) -> None:
    chain = Chain((4, 4, 2)).conv("conv", 3)
    chain.operators[-1] = replace(chain.operators[-1], requant=PowerOfTwo(26, 28))
    triple = Triple(chain.dense("dense", 2).graph(), Ordinary(), board(board_name), "")
    with pytest.raises(ThimbleError, match=r"conv \(Conv2d\): its sums reach .* beyond 32 bits"):
        scheduled(triple)
