"""Patches: MobileNetV2's published figures, and random networks run exactly, halo and all."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.plan.cost import cost
from pipeline.schedules.channels import ChannelByChannel
from pipeline.schedules.lower import load_of, needed
from pipeline.schedules.patches import Run
from pipeline.search.moves.patches import ending, least
from pipeline.strategies.patch import Patch
from tests.graphs import Net as RandomNet
from tests.graphs import random_graph
from tests.strategies import nets
from tests.strategies.nets import Net
from tests.strategies.proving import exact
from tests.strategies.test_ordinary import BOARD
from tests.strategies.zoo import network
from tests.tiers import quick


@pytest.mark.ci
def test_mobilenet_as_published() -> None:
    """320,960 B, 30.6 % more work in the stage and 9.3 % in all; the verifier counts the same."""
    graph = nets.mobilenet_v2(224, weights=False)
    plan = Patch().plan(graph, BOARD)
    notes = dict(plan.notes)
    assert graph.tensors[str(notes["patch_stage_end"])].shape == (28, 28, 32)
    assert notes["patch_stage_overhead_pct"] == 30.59 and notes["patch_overhead_pct"] == 9.28
    found = cost(plan, graph, BOARD)
    assert found.pmu_bytes == found.arena_bytes == 320_960
    assert (found.macs, found.macs_executed) == (300_774_272, 328_693_616)


def test_halo_is_clipped_to_the_image() -> None:
    """3x3 on 8 rows, 4 patches of 2 rows: 3, 4, 4 and 3 rows of the input."""
    run = Run(two_layers(8), tuple(needed(two_layers(8))[:1]), 2, 2)
    assert list(map(len, run.sides["input"][0])) == [3, 4, 4, 3]


def two_layers(size: int, stride: int = 1) -> Graph:
    net = Net((size, size, 3))
    x = net.conv(net.conv("input", 8, 3), 8, 3, stride)
    return net.head(x, 4)


def test_recomputed_rows_by_hand() -> None:
    """8x8 in 2x2 patches: each of the second layer's 4x4 patches needs 5x5 of the first."""
    graph = two_layers(8)
    plan = Patch(rows=2, columns=2, until="conv2d1").plan(graph, BOARD)
    assert exact(plan, graph).report.recomputed == {"conv2d0": (4 * 25 - 64) * 8}


@pytest.mark.parametrize("seed", quick(6, range(60), ci=16))
def test_random_networks_run_exactly(seed: int) -> None:
    """In the longest part that can run so."""
    graph, grid = random_graph(seed // 3), ((2, 2), (3, 2), (1, 4))[seed % 3]
    until = next((stage.op.output for stage in reversed(ending(graph, grid))), "")
    strategy = Patch(rows=grid[0], columns=grid[1], until=until)
    if not until:
        with pytest.raises(ThimbleError, match="cannot run in"):
            strategy.plan(graph, BOARD)
        return
    plan = strategy.plan(graph, BOARD)
    report = exact(plan, graph).report
    stage, regions = least(graph, BOARD, grid, until)
    assert report.macs_executed == graph.macs + stage.again
    assert cost(plan, graph, BOARD).pmu_bytes <= load_of(regions, graph, BOARD) / 2


def test_depthwise_in_its_inputs_place() -> None:
    """Run it channel by channel where it would need more than the stage does; else whole."""
    net = Net((24, 24, 1))
    x = net.conv("input", 4, 3, 2)
    x = net.conv(net.conv(x, 8, 3, 2), 64)
    graph = net.head(net.conv(net.depthwise(x), 8), 3)
    plan = Patch(rows=2, columns=2, until="conv2d1").plan(graph, BOARD)
    exact(plan, graph)
    assert cost(plan, graph, BOARD).pmu_bytes == 6 * 6 * (64 + 8) > 24 * 24
    _, regions = least(graph, BOARD, (2, 2), "conv2d1")
    assert [r.op.name for r in regions if isinstance(r, ChannelByChannel)] == ["conv2d3"]


def test_what_is_enlarged_ends_the_part_in_patches() -> None:
    """Neighbouring pixels read the same one there: tiles would be of no one size."""
    net = RandomNet((16, 16, 3), np.random.default_rng(0))
    before = net.conv(8, (3, 3), stride=(2, 2))
    net.rearrange((14, 14, 8), repeats=(2, 2, 1))
    after = net.conv(4, (3, 3))
    graph = net.graph()
    assert [stage.op.output for stage in ending(graph, (2, 2))] == [before]
    exact(Patch(rows=2, columns=2).plan(graph, BOARD), graph)
    with pytest.raises(ThimbleError, match=f"until {after}"):
        Patch(rows=2, columns=2, until=after).plan(graph, BOARD)


def test_a_gate_inside_of_a_block_ends_the_part_in_patches() -> None:
    """The mean of all pixels would be computed again for each patch."""
    net = Net((16, 16, 3))
    first = x = net.conv("input", 8, 3)
    x = net.add(x, net.conv(net.multiply(x, net.average(x)), 8))
    graph = net.head(net.conv(x, 4, 3, 2), 4)
    found = ending(graph, (2, 2))
    assert [stage.op.output for stage in found] == [first]


def test_nothing_to_patch() -> None:
    with pytest.raises(ThimbleError, match="cannot run in 4x4 patches for any"):
        Patch().plan(network("autoencoder"), BOARD)
    with pytest.raises(ThimbleError, match="until softmax"):
        Patch(until="softmax").plan(two_layers(8), BOARD)
    with pytest.raises(ThimbleError, match="at least one patch"):
        Patch(rows=0)


def test_a_stream_cannot_be_read_again() -> None:
    with pytest.raises(ThimbleError, match="streams in"):
        Patch().plan(two_layers(8), replace(BOARD, streams_input=True))


def test_no_patch_lies_wholly_in_the_padding() -> None:
    """Pad 8 rows to 12: the last of 4 patches would read none, so the stage ends elsewhere."""
    net = RandomNet((8, 8, 2))
    net.pad(((0, 4), (0, 0), (0, 0)))
    padded = net.conv(3, (1, 1))
    net.conv(2, stride=(2, 2))
    graph = net.graph()
    found = [stage.op.output for stage in ending(graph, (4, 4))]
    assert padded not in found and found == [graph.output]
    plan = Patch().plan(graph, BOARD)
    exact(plan, graph)
