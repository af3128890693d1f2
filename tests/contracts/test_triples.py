"""Networks that some strategy planned and no C was made of, or that ended in a raw exception; and a
sample of the campaign that found them (``python -m tests.campaign``)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline import passes
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.requant import PowerOfTwo
from pipeline.hardware import Hardware
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from pipeline.strategies.patch import Patch
from pipeline.strategies.replace import Replace
from pipeline.strategies.single_transpose import SingleTranspose
from pipeline.strategies.sliding import Sliding
from tests.contracts.triples import GOOD, PAIRS, REFUSED, RUNS, Triple, scheduled, tried
from tests.graphs import Net
from tests.strategies.chains import Chain
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

pytestmark = needs_arm


def board(name: str = "host", streams: bool = False) -> Hardware:
    found = board_named(name, streams_input=streams, weights_in="flash")
    return replace(found, sram_bytes=max(found.sram_bytes, 1 << 15))


def runs(graph: Graph, strategy: Strategy, hardware: Hardware) -> None:
    end = tried(Triple(graph, strategy, hardware, ""))
    assert end.kind == RUNS, end


def refused(graph: Graph, strategy: Strategy, hardware: Hardware) -> str:
    with pytest.raises(ThimbleError) as error:
        scheduled(Triple(graph, strategy, hardware, ""))
    return str(error.value)


def transposed() -> Graph:
    """Convolution, channels first, flat, dense."""
    net = Net((6, 5, 3))
    net.conv(4, padding=(0, 0, 0, 0))
    net.rearrange((4, 4, 3), (1, 2, 0))
    net.reshape((48,))
    net.dense(2)
    return passes.applied(net.graph(), ["fold_reshape"])


CHAINS = Replace(), SingleTranspose(), Herringbone()


@pytest.mark.parametrize("strategy", quick([Herringbone(), Joint()], [*CHAINS, Joint()]))
@pytest.mark.parametrize("streams", quick(1, [False, True]))
def test_channels_first_before_a_dense_layer(strategy: Strategy, streams: bool) -> None:
    runs(transposed(), strategy, board(streams=streams))


def sliced() -> Net:
    net = Net((9, 7, 4))
    net.conv(6)
    net.rearrange((3, 3, 4), (0, 1, 2), (2, 1, 1), (2, 2, 1))  # every other pixel from somewhere on
    return net


@pytest.mark.parametrize("strategy", quick([Sliding()], [*CHAINS, Joint(), Sliding()]))
def test_slices_with_steps(strategy: Strategy) -> None:
    net = sliced()
    net.conv(3)
    runs(net.graph(), strategy, board())


def test_a_slice_over_its_input_is_moved_element_by_element() -> None:
    net = Net((5, 5, 4))
    net.rearrange((5, 5, 4), (1, 0, 2))
    net.rearrange((3, 5, 3), (0, 1, 2), (1, 0, 1))
    runs(net.graph(), Herringbone(), board())


@pytest.mark.parametrize("strategy", quick([Joint()], [Ordinary(), Joint(), Sliding()]))
def test_nearest_neighbours_that_are_repeated_unevenly(strategy: Strategy) -> None:
    net = Net((3, 4, 2))
    net.lookup()
    net.rearrange((8, 7, 2), repeats=(3, 2, 1))
    net.conv(2)
    runs(net.graph(), strategy, board())


@pytest.mark.parametrize("streams", [False, True])
def test_joint_runs_what_no_kernel_makes_row_by_row(streams: bool) -> None:
    """The mean of a pixel's channels, as importers have it, and a transposed image."""
    net = Net((6, 4, 3))
    net.conv(5)
    net.reshape((24, 5, 1))
    net.mean((1, 5), stride=(1, 1))
    net.reshape((6, 4, 1))
    net.rearrange((4, 6, 1), (1, 0, 2))
    net.conv(2)
    runs(net.graph(), Joint(), board(streams=streams))


def test_a_reshape_of_the_input_is_its_shape() -> None:
    net = Net((6 * 5 * 2,))
    net.reshape((6, 5, 2))
    net.conv(3)
    net.dense(4)
    before, after = net.graph(), passes.applied(net.graph(), ["fold_reshape"])
    assert [op.name for op in after.operators] == ["conv1", "dense2"]
    frames = np.random.default_rng(0).integers(-128, 128, (3, 60))
    assert (after.outputs(frames.reshape(3, 6, 5, 2)) == before.outputs(frames)).all()
    for strategy in (Joint(), Sliding()):
        runs(after, strategy, board(streams=True))
    runs(before, Joint(), board(streams=True))  # without the pass
    assert refused(before, Sliding(), board()).endswith("all at once: use strategy=ordinary")


def test_patches_of_a_transposed_image_are_refused() -> None:
    net = Net((8, 7, 2))
    net.rearrange((7, 8, 2), (1, 0, 2))
    net.conv(2)
    assert refused(net.graph(), Patch(), board()).endswith("fewer strategy.rows and .columns")


@pytest.mark.parametrize("name", quick(1, ["arduino", "arduino_mega"]))
def test_patches_on_an_avr(name: str) -> None:
    """Its kernels for whole images took a patch for one."""
    net = Net((7, 11, 8))
    net.conv(12)
    net.dense(5)
    runs(net.graph(), Patch(rows=1, columns=2), board(name))


def test_sliding_over_rows_that_only_a_slice_leaves_out() -> None:
    net = Net((9, 2, 3))
    net.conv(3)
    net.rearrange((2, 2, 3), (0, 1, 2), (5, 0, 0))
    net.conv(2)
    runs(net.graph(), Sliding(), board())


@pytest.mark.parametrize("name", quick(["nucleo_f767zi"], ["nucleo_f767zi", "nucleo_u575zi"]))
@pytest.mark.parametrize("shape", quick(1, [[5, 2, 7], [1, 2, 3], [2, 1, 4]]))
def test_images_of_one_row_or_column_compile_without_a_warning(name: str, shape: list[int]) -> None:
    net = Net(tuple(shape))
    net.maximum((min(2, shape[0]), 1), stride=(1, 1))
    net.conv(9, (1, shape[1]), stride=(1, 2), padding=(0, 0, 0, 0))
    for strategy in (Ordinary(), Herringbone()):
        runs(net.graph(), strategy, board(name))


def test_what_4_bits_have_no_c_for_is_refused_at_schedule() -> None:
    grouped = Chain((5, 5, 2)).conv("conv", 4, groups=2).dense("dense", 3)
    said = refused(grouped.graph(), Herringbone(), board("arduino"))
    assert said.startswith("strategy=herringbone has no C on arduino for conv (Conv2d): ")
    assert said.endswith("(groups=2): use quantize=int8, or another network")
    narrow = Chain((5, 5, 2)).conv("conv", 4).graph()
    assert "conv has to make 8 bits or more, not uint4: " in refused(
        narrow, Ordinary(), board("arduino")
    )
    wide = Chain((150, 150, 2)).conv("conv", 2, (1, 1)).conv("next", 2, (3, 3)).dense("dense", 3)
    said = refused(wide.graph(), Ordinary(), board("host"))
    assert "kernels of 4-bit networks address an arena of 16 KiB: use quantize=int8" in said
    sums = (
        Chain((1, 7, 3), "int8")
        .conv("first", 3, (1, 3))
        .conv("second", 2, (1, 3))
        .dense("dense", 2)
    )
    strategy = Partial(search="pex", channels=1)
    assert tried(Triple(sums.graph(), strategy, board(), "")).kind in GOOD


def test_sliding_windows_in_the_padding_below() -> None:
    net = Net((8, 3, 2))
    net.conv(2)
    net.conv(3, (1, 1), stride=(2, 1), padding=(0, 3, 0, 0))
    net.conv(2, (3, 1))
    runs(net.graph(), Sliding(), board())


def test_an_input_that_streams_in_and_is_never_read() -> None:
    """All windows are on the padding."""
    net = Net((1, 4, 2))
    net.conv(3, (1, 1), stride=(2, 1), padding=(1, 0, 0, 0))
    said = refused(net.graph(), Sliding(), board("arduino", streams=True))
    assert said.endswith("it streams in, and nothing reads it: use strategy=ordinary")


def test_windows_of_the_arriving_image_that_lie_in_the_padding() -> None:
    """To the right of it: no pixel waits for a piece that never comes."""
    net = Chain((8, 1, 1), "int8").conv("conv", 3, (2, 1), padding=(0, 0, 0, 1)).dense("dense", 5)
    said = refused(net.graph(), SingleTranspose(convolve_arriving=True), board(streams=True))
    assert said.endswith("leave strategy.convolve_arriving out")


def test_padded_pixels_in_patches_without_assembly() -> None:
    """Names in C hid the parameters that say where rows and columns lie."""
    net = Chain((1, 8, 1), "uint8").conv("one", 2, (1, 1), padding=(1, 0, 1, 1))
    net.conv("two", 2, (1, 3), groups=2, stride=(1, 2), padding=(0, 0, 1, 0))
    net.conv("three", 1, (1, 2), stride=(1, 2), padding=(0, 1, 0, 0)).dense("dense", 2)
    runs(net.graph(), Patch(rows=1, columns=4), board("nucleo_g0b1re"))


def test_a_variable_of_a_parameters_name_is_no_use_of_it() -> None:
    """Parts of whole blocks of pixels: none begins early."""
    net = Net((5, 23, 13))
    first = net.conv(11, (3, 2), padding=(1, 1, 1, 1))
    net.conv(11)
    net.plus(net.conv(11, (1, 1)), first)
    net.mean((5, 24))
    net.dense(3)
    runs(net.graph(), Patch(rows=2, columns=1), board("nucleo_g0b1re"))


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


def test_a_peak_of_a_few_bytes_is_found() -> None:
    """Limits were halved for ever between two neighbours."""
    net = Chain((1, 1, 2)).conv("first", 2, (1, 1)).conv("second", 2, (1, 1)).dense("dense", 1)
    runs(net.graph(), Joint(extra_macs=0.2), board("arduino"))


ONCE_EACH = [number + len(PAIRS) * (number == 134) for number in range(100, 100 + len(PAIRS))]
"""Every strategy with every family of boards; the 134th network alone takes as long as ten."""


@pytest.mark.parametrize("number", quick(3, ONCE_EACH))
def test_a_sample_of_the_campaign(number: int) -> None:
    triple = Triple.drawn(number)
    end = tried(triple)
    assert end.kind in GOOD, (triple.strategy, triple.hardware.name, end)


@pytest.mark.parametrize("number", quick(1, [1272, 1218, 1644]))
def test_what_the_campaign_of_seed_4_found_on_avrs(number: int) -> None:
    """A loop over the only row of an arriving image; a pragma that avr-gcc does not know; averages
    of 4 bits over their own sums."""
    assert tried(Triple.drawn(number, 4)).kind == RUNS


@pytest.mark.parametrize("board_name", ["host", "arduino"])
def test_sums_beyond_32_bits_are_refused_before_c_is_made(board_name: str) -> None:
    chain = Chain((4, 4, 2)).conv("conv", 3)
    chain.operators[-1] = replace(chain.operators[-1], requant=PowerOfTwo(26, 28))
    triple = Triple(chain.dense("dense", 2).graph(), Ordinary(), board(board_name), "")
    with pytest.raises(ThimbleError, match=r"conv \(Conv2d\): its sums reach .* beyond 32 bits"):
        scheduled(triple)


@pytest.mark.parametrize("number", quick(1, [1168, 358, 1406, 1962]))
def test_what_the_campaign_of_seed_5_found(number: int) -> None:
    """A tile of padding alone in a loop of tiles; the last pass of channels by itself; two C names
    of one function; an output that overwrites pixels which a kernel of whole rows still needs."""
    assert tried(Triple.drawn(number, 5)).kind == RUNS


@pytest.mark.ci
def test_the_campaign_of_seed_6_found_images_whose_first_row_nothing_needs() -> None:
    """They had the place of another image."""
    assert tried(Triple.drawn(1022, 6)).kind == RUNS


def test_the_campaign_of_seed_7_found_rows_kept_that_were_never_made() -> None:
    assert tried(Triple.drawn(1548, 7)).kind == RUNS


def test_the_campaign_of_seed_9_found_lists_of_moves_too_long_for_an_avr() -> None:
    end = tried(Triple.drawn(1962, 9))
    assert end.kind == REFUSED and "its permutations: an array on an AVR has at most" in end.said
