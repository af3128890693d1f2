"""Rows that move down as new ones come: proved, interpreted, and from window to window alike."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Move, Plan
from pipeline.schedules.sliding import Made, Order, kept_bytes
from pipeline.sliding import Windows
from pipeline.strategies.sliding import Sliding
from tests.contracts.test_strategies import crowded
from tests.graphs import Net
from tests.strategies.proving import exact
from tests.targets.conftest import load_hardware
from tests.test_sliding import noise, one_by_one, padded, pooled, spotter

STREAMED = replace(load_hardware(), streams_input=True, weights_in="flash")
RESIDENT = replace(STREAMED, streams_input=False)


def places(plan: Plan, graph: Graph, output_row: int) -> list[tuple[str, int]]:
    """List the steps between output row ``output_row`` and the next, and where rows begin."""
    found, row = list[tuple[str, int]](), -1
    for step in plan.tracks[0].steps:
        piece = step.dst if isinstance(step, Move) else step.out  # type: ignore[union-attr]
        buffer = plan.buffer[piece.buffer]
        name = step.op if isinstance(step, Compute) else "move"
        if buffer.tensor == graph.output:
            row += 1
        elif row == output_row:
            box = piece.box(buffer.shape, {})
            found.append((name, int(buffer.addresses(box).reshape(-1)[0])))
    return found


@pytest.mark.parametrize("board", [STREAMED, RESIDENT], ids=["streamed", "resident"])
@pytest.mark.parametrize(
    ("one", "windows"),
    [(spotter(), Windows(4, 2)), (padded(), Windows(2, 1)), (pooled(), Windows(3, 1))],
    ids=["spotter", "padded", "pooled"],
)
def test_the_plan_is_right(one: Graph, windows: Windows, board: object) -> None:
    graph = windows.graph(one)
    plan = roomy(Sliding().plan(graph, board))  # type: ignore[arg-type]
    report = verify(plan, graph)
    assert not report.recomputed
    frames = noise(graph, 1)
    wanted = one_by_one(one, frames, windows)[0]
    assert (interpret(plan, graph, frames[0]).output.reshape(wanted.shape) == wanted).all()


def test_every_window_behind_the_first_is_computed_at_the_same_places() -> None:
    graph = Windows(6, 2).graph(spotter(24))
    plan = Sliding().plan(graph, STREAMED)
    second, *others = (places(plan, graph, row) for row in range(1, 4))
    assert second and all(other == second for other in others)


def test_more_windows_take_no_more_memory_but_for_their_outputs() -> None:
    def arena(windows: int) -> int:
        graph = Windows(windows, 2).graph(spotter(24))
        plan = Sliding().plan(graph, STREAMED)
        tensor = graph.tensors[graph.output]
        used = [b.extent[1] for b in plan.buffers if b.memory == STREAMED.activation_memory]
        return max(used) // 2 - int(tensor.bytes)

    assert arena(3) == arena(8)


def test_rows_are_made_as_late_as_possible() -> None:
    graph = spotter(8)
    order = Order.of(graph, graph.operators, graph.input)
    at = {made: number for number, made in enumerate(order.made)}
    assert at[Made("image", 4)] > at[Made("conv0", 0)]
    assert order.height["image"] == 3 and order.height["conv0"] == 3
    assert len(order.made) == len(set(order.made))


def test_what_stays_for_the_next_window() -> None:
    """Keep one row of a spotter's image (kernel 3, stride 2), two of the first convolution; the
    dense layer reads five rows, of which the next window's reads four."""
    graph = Windows(2, 2).graph(spotter())
    row = {name: graph.tensors[name].bytes / graph.tensors[name].shape[0]
           for name in ("image", "conv0", "conv1")}  # fmt: skip
    assert kept_bytes(graph) == row["image"] + 2 * row["conv0"] + 4 * row["conv1"]


def test_windows_with_ends_of_their_own_keep_what_they_share() -> None:
    """Keep two rows of the image of ``padded``; all rows of the convolution but the first."""
    graph = Windows(2, 1).graph(padded())
    image, conv = (graph.tensors[name].bytes / graph.tensors[name].shape[0]
                   for name in ("image", "conv0"))  # fmt: skip
    assert kept_bytes(graph) <= 12 * image + 11 * conv
    assert kept_bytes(graph) >= 9 * conv


def test_an_image_that_is_summed_up_as_it_comes() -> None:

    net = Net((8, 8, 1), np.random.default_rng(1))
    net.mean((2, 2), stride=(2, 2))
    net.conv(3, (3, 3))
    with pytest.raises(ThimbleError, match=r"sums up its image.*strategy=joint"):
        Sliding().plan(net.graph(), STREAMED)


def test_tensors_may_be_called_as_rows_of_others() -> None:
    """``relu.2`` isn't where ``relu`` lies from its third row on."""
    one = crowded(padded(), "2")
    graph = Windows(2, 1).graph(one)
    plan = Sliding().plan(graph, STREAMED)
    exact(roomy(plan), graph)


@pytest.mark.parametrize("board", [STREAMED, RESIDENT], ids=["streamed", "resident"])
def test_windows_that_lie_in_the_padding(board: Hardware) -> None:
    """Pad by one row above the image: nothing of what comes before is made."""
    net = Net((1, 1, 1), np.random.default_rng(1))
    net.conv(1, (1, 1))
    net.conv(1, (1, 1))
    net.conv(1, (1, 1), stride=(2, 1), padding=(1, 0, 0, 0))
    graph = net.graph()
    plan = Sliding().plan(graph, board)
    exact(roomy(plan), graph)
