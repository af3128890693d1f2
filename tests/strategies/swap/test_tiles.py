"""The rule of SwapNN's tiles, and that the tiles are what it says."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.search.swap.cuts import cut, even, sums
from pipeline.search.swap.layers import chain, layers
from pipeline.search.swap.tiles import tiling, tilings
from tests.graphs import Net
from tests.strategies.swap.nets import Chain, alexnet, mobilenet, vgg16


@pytest.mark.parametrize(
    ("network", "at_16", "at_128"),
    [(vgg16, 75_831, 2_228), (alexnet, 7_229, 545), (mobilenet, 3_997, 299)],
)
def test_numbers_of_io_tasks(network: Callable[[], Graph], at_16: int, at_128: int) -> None:
    """Recomputed from the paper's rule; its own figure 7 says 85,024 and 2,248 for VGG16."""
    chain = layers(network())
    for buffer_bytes, number in ((16 * 1024, at_16), (128 * 1024, at_128)):
        assert sum(each.io_tasks for each in tilings(chain, buffer_bytes)) == number


@pytest.mark.parametrize("network", [vgg16, alexnet, mobilenet])
@pytest.mark.parametrize("buffer_kib", [16, 64, 128, 512])
def test_tiles_are_the_rules_and_hold_every_weight_once(
    network: Callable[[], Graph], buffer_kib: int
) -> None:
    room = buffer_kib * 1024
    for each in tilings(layers(network()), room):
        found, layer = cut(each), each.layer
        assert len(found.rows) * len(found.columns) * len(found.parts) == each.inputs
        assert len(found.weights) == each.weights
        held = 0
        for tile in found.weights:
            depth = layer.row_bytes // layer.source_shape[-1]
            whole = (tile.rows[1] - tile.rows[0]) * layer.row_bytes
            some = (tile.shared[1] - tile.shared[0]) * (tile.columns[1] - tile.columns[0]) * depth
            assert (whole + some) / len(found.parts) <= room
            held += whole + some
        if len(found.parts) == 1:
            assert held == layer.weight_bytes
            pixels = prod(max(b - a for a, b in axis) for axis in (found.rows, found.columns))
            assert pixels * layer.channels + 4 * sums(found) <= room


def test_even_ranges_follow_one_another() -> None:
    for extent in range(1, 40):
        for number in range(1, extent + 1):
            ranges = even(extent, number)
            assert len(ranges) == number
            assert [n for start, stop in ranges for n in range(start, stop)] == list(range(extent))
            assert all(start < stop for start, stop in ranges)


def test_an_input_tile_holds_what_its_output_reads() -> None:
    chain = Chain("net", (23, 17, 4))
    chain.conv(8, 3, 2, 1)
    (layer,) = layers(chain.graph())
    found = cut(tiling(layer, 300))
    assert layer.windows is not None
    for row, rows in enumerate(found.rows):
        for column, columns in enumerate(found.columns):
            held = found.read(row, column)
            for window, out, extent, (low, high) in zip(
                layer.windows, (rows, columns), (23, 17), held, strict=True
            ):
                start, stop = window.span(*out)
                assert 0 <= low <= max(0, start)
                assert min(stop, extent) <= high <= extent


def test_a_pixel_larger_than_a_buffer_is_refused() -> None:
    chain = Chain("net", (4, 4, 4))
    chain.conv(300, 1)
    (layer,) = layers(chain.graph())
    with pytest.raises(ThimbleError, match=r"one pixel of conv2d0 has 300 B.*larger buffers"):
        tiling(layer, 300)


def test_other_topologies_and_operators_are_refused() -> None:
    net = Net((8, 8, 4))
    net.plus(net.conv(4), net.conv(4))
    with pytest.raises(ThimbleError, match=r"takes chains of layers; try strategy.scheduler=best"):
        chain(net.graph())
    net = Net((8, 8, 4))
    net.lookup()
    with pytest.raises(ThimbleError, match=r"swapnn knows no Lookup; .*=best"):
        chain(net.graph())
    net = Net((8, 8, 4))
    net.conv(4, groups=2)
    with pytest.raises(ThimbleError, match="in groups of channels"):
        layers(net.graph())
