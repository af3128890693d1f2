"""A region of two tracks, proposed by hand: what its acts become, and that it computes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from pipeline.codegen.checks import arena_bytes
from pipeline.graph.graph import Graph
from pipeline.hardware import Card, Hardware
from pipeline.plan.fit import roomy
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Loop, Plan, Step
from pipeline.schedules.bounds import Range
from pipeline.schedules.lower import laid_at
from pipeline.schedules.swapped import Act, Job, Swapped, Window
from tests.codegen.cortex_m.support import core
from tests.strategies.proving import exact
from tests.strategies.swap.nets import Chain, board

ROWS = 9


def network(rng: np.random.Generator) -> Graph:
    """A 3x3 convolution of 9 rows, padded."""
    return Chain("net", (ROWS, 4, 2)).conv(3, 3, 1, 1).graph(rng)


def row_by_row(graph: Graph, frames: int = 1) -> Plan:
    """Rows come in, are computed and go out one by one."""
    source, target = graph.tensors["input"], graph.tensors["conv2d0"]
    kernel, read, made_of = graph.tensors["constant0"], source.shape[1:], target.shape[1:]
    above = 4 * prod(read), -(-(4 * prod(read) + 2 * prod(made_of)) // 32) * 32
    windows = (
        Window("in", source, 0, (4, *read)),
        Window("out", target, above[0], (2, *made_of)),
        Window("w", kernel, above[1], kernel.shape),
    )
    weights = Act("load", "w", 0, tuple(Range(0, n) for n in kernel.shape))
    moving, computing = [Job(0, (weights,))], list[Job]()
    ready = list[int]()
    for turn in range(ROWS * frames):
        frame, row = divmod(turn, ROWS)
        for new in range(row + 1 if row else 0, min(row + 2, ROWS)):
            free = frame * ROWS + max(0, new - 2)
            loaded = (Range(new, 1), *(Range(0, n) for n in read))
            moving.append(Job(free, (Act("load", "in", 0, loaded, frame),)))
        ready.append(len(moving))
        made = (Range(row, 1), *(Range(0, n) for n in made_of))
        given = (("in", 0), ("w", 0))
        before = ready[turn - 1] + 1 if turn else 0  # the row before is stored behind it
        act = Act("make", "out", 0, made, frame, "conv2d0", given)
        computing.append(Job(max(ready[turn], before), (act,)))
        moving.append(Job(turn + 1, (Act("store", "out", 0, made, frame),)))
    tracks = lambda: computing, lambda: moving
    region = Swapped(("input", "conv2d0", "constant0"), ("constant1",), windows, *tracks)
    size = above[1] + -(-kernel.size // 256) * 256
    return laid_at([region], graph, board(size), 2 * size, {}, frames).plan("test")


@pytest.mark.parametrize("frames", [1, 3])
def test_rows_that_pass_through_compute_what_the_graph_computes(frames: int) -> None:
    graph = network(np.random.default_rng(0))
    assert not exact(row_by_row(graph, frames), graph).report.recomputed


def test_tiles_at_the_end_are_as_large_as_the_others() -> None:
    graph = network(np.random.default_rng(0))
    window = Window("in", graph.tensors["input"], 0, (4, 4, 2))
    assert window.box([(4, 8), (0, 4), (0, 2)]) == (Range(4, 4), Range(0, 4), Range(0, 2))
    assert window.box([(8, 9), (0, 4), (0, 2)]) == (Range(8, 4), Range(0, 4), Range(0, 2))
    held = window.buffer("sram")
    assert held.wrap == (4, 0, 0)
    assert held.extent == (0, 2 * 4 * 4 * 2)
    twice = replace(window, copies=2, copy_bytes=48).buffer("sram")
    assert (twice.copies, twice.copy_stride) == (2, 96)


def pointwise(hardware: Hardware, kept: int = 0) -> tuple[Plan, Graph]:
    """A convolution's rows, pixel by pixel, one loop; weights in flash. ``kept``: ``laid_at``'s."""
    graph = Chain("net", (ROWS, 4, 2)).conv(3, 1).graph(np.random.default_rng(0))
    source, target = graph.tensors["input"], graph.tensors["conv2d0"]
    base = -(-prod(source.shape) // 32) * 32
    whole = Window("in", source, 0, source.shape), Window("out", target, base, target.shape)
    loaded, stored = (tuple(Range(0, n) for n in each.tensor.shape) for each in whole)
    rows = [(Range(row, 1), *stored[1:]) for row in range(ROWS)]
    making = tuple(Act("make", "out", 0, row, 0, "conv2d0", (("in", 0),)) for row in rows)
    moving = [Job(0, (Act("load", "in", 0, loaded),)), Job(1, (Act("store", "out", 0, stored),))]
    fixed = ("constant0", "constant1")
    region = Swapped(("input", "conv2d0"), fixed, whole, lambda: [Job(1, making)], lambda: moving)
    size = 2 * (base + prod(target.shape))
    return laid_at([region], graph, hardware, size, {}, kept=kept).plan("test"), graph


def convolutions(steps: Sequence[Step]) -> Iterator[Compute]:
    for step in steps:
        if isinstance(step, Loop):
            yield from convolutions(step.body)
        elif isinstance(step, Compute):
            yield step


@pytest.mark.parametrize("kept_bytes", [0, 64])
def test_a_loop_gets_on_without_the_scratch_that_there_is_no_room_for(kept_bytes: int) -> None:
    """Leave room for what a driver keeps; looking for scratch outside of loops did not end."""
    wide = replace(core(), card=Card(bytes=1 << 33))
    fast, graph = pointwise(wide)
    assert not any(isinstance(step, Compute) for step in fast.tracks[0].steps)
    assert all(step.scratch for step in convolutions(fast.tracks[0].steps))
    for missing in (0, 1):
        size = arena_bytes(fast) + kept_bytes + wide.stack_reserve_bytes - missing
        plan, _ = pointwise(replace(wide, sram_bytes=size), 2 * kept_bytes)
        used = {bool(step.scratch) for step in convolutions(plan.tracks[0].steps)}
        assert used == {not missing}
        assert (arena_bytes(plan) == arena_bytes(fast)) == (not missing)
        verify(roomy(plan), graph)
