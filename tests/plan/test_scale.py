"""Readers on networks of millions of elements, and the rules that make that possible."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware
from pipeline.plan.cost import cost, intervals, merged
from pipeline.plan.fit import roomy
from pipeline.plan.interpret import Interpreter, interpret
from pipeline.plan.memory_state import kept
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Affine, Buffer, Plan, PlanError, Signal, Table, Track, packed
from tests.comparing import equal
from tests.plan.small import buffer, layer, memory, moved, plan_with, scratch, step, then
from tests.strategies.chains import board, mnist
from tests.strategies.nets import Net, vgg16
from tests.strategies.test_ordinary import BOARD, Ordinary

HUGE: Hardware = replace(BOARD, flash_bytes=1 << 28)


def test_weights_in_flash_take_no_tokens() -> None:
    """VGG16: 138 M weights, 6.4 MB of activations at their peak."""
    graph = vgg16()
    plan = roomy(Ordinary().plan(graph, HUGE))
    tracemalloc.start()
    report = verify(plan, graph)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report.macs_executed == graph.macs == 15_470_264_320
    assert peak < 300_000_000


def adding(size: int) -> tuple[Plan, Graph, np.ndarray]:
    """In place: a tensor of size x size x 16 added to itself shifted through a lookup."""
    net = Net((size, size, 16))
    graph = net.graph(net.add("input", net.lookup(net.depthwise("input"))))
    return Ordinary().plan(graph, BOARD), graph, net.frame()


@pytest.mark.ci
def test_in_place_addition_of_a_million_elements_is_one_step() -> None:
    plan, graph, frame = adding(256)
    assert plan.buffer["add2"].map in (plan.buffer["input"].map, plan.buffer["lookup1"].map)
    equal(interpret(plan, graph, frame).output, graph.evaluate(frame[None])[0])


def test_what_is_read_after_it_is_overwritten_goes_block_by_block() -> None:
    """The interpreter must not hide a wrong order: a 3x3 depthwise convolution onto its input."""
    net = Net((6, 6, 2))
    net.depthwise("input")
    graph, frame = net.graph(), net.frame()
    plan = Ordinary().plan(graph, BOARD)
    wrong = buffer(graph.output, map=plan.buffer["input"].map)(plan)
    with pytest.raises(PlanError, match="overwrites element 0 of input before its last read"):
        verify(wrong, graph)
    values = frame.copy()  # pixel by pixel, each written before the next is read
    for row in range(6):
        for column in range(6):
            values[row, column] = graph.evaluate(values[None])[0][row, column]
    equal(interpret(wrong, graph, frame).output, values)
    assert not np.array_equal(values, graph.evaluate(frame[None])[0])


@pytest.mark.parametrize("weights_in", ["sram", "flash"])
def test_constants_that_nothing_can_touch_are_kept(weights_in: str) -> None:
    graph = mnist().graph()
    plan = Ordinary().plan(graph, board(weights_in=weights_in))
    assert kept(plan, graph) == {b.name for b in plan.buffers if b.role == "constant"}


def test_constants_that_something_could_touch_are_not() -> None:
    plan, graph = layer()
    assert kept(plan, graph) == {"y.weight", "y.bias"}
    for wrong in (
        moved("y.weight", 2, memory="sram"),  # under an activation
        buffer("y.weight", map=Affine(0, (0, 2))),  # on itself
        plan_with(resident=("x", "y.bias")),
    ):
        assert kept(wrong(plan), graph) == {"y.bias"}
        with pytest.raises(PlanError):
            verify(wrong(plan), graph)
    writable = buffer("y.weight", role="activation")(plan)
    assert kept(writable, graph) == {"y.bias"}
    verify(writable, graph)  # and nothing does write it


def test_constants_in_a_granule_that_another_track_writes_are_not_kept() -> None:
    plan, graph = layer()
    near = then(moved("y.bias", 32, memory="sram"), memory(granule_bytes=64))(plan)
    assert kept(near, graph) == {"y.weight", "y.bias"}
    more = plan_with(tracks=(*plan.tracks, Track("io", (Signal("s"),))))
    assert kept(more(near), graph) == {"y.weight"}
    assert kept(more(moved("y.bias", 64)(near)), graph) == {"y.weight", "y.bias"}


def test_memories_are_made_as_large_as_they_are_used() -> None:
    graph = mnist().graph()
    plan = Ordinary().plan(graph, board(sram_bytes=1 << 40))
    machine = Interpreter(plan, graph, mnist().frame())
    assert len(machine.storage["sram"].bytes) < 4000


def test_intervals_of_any_map() -> None:
    def of(shape: tuple[int, ...], bits: int, where: Affine | Table) -> list[list[int]]:
        return intervals(Buffer("x", "x", "sram", shape, bits, where)).tolist()

    assert of((2, 3), 8, packed((2, 3), 8, 10)) == [[10, 22]]
    assert of((2, 3), 8, Affine(0, (10, 2))) == [[0, 6], [10, 16]]
    assert of((4, 2), 4, Affine(0, (2, 1), (2, 0))) == [[0, 4]]
    assert of((3,), 4, Table((7, 2, 3))) == [[2, 4], [7, 8]]
    assert merged(np.array([[0, 9], [1, 2], [9, 12], [20, 21]])).tolist() == [[0, 12], [20, 21]]


def test_scratch_counts_for_the_arena_and_its_bound_but_not_for_the_peak() -> None:
    plan, graph = layer()
    found = cost(step(scratch(20), scratch=("scratch",))(plan), graph, BOARD)
    assert (found.pmu_bytes, found.arena_bytes, found.over_bound_bytes) == (10, 24, 10)
    bare = cost(plan, graph, BOARD)
    assert (bare.pmu_bytes, bare.arena_bytes, bare.over_bound_bytes) == (10, 14, 4)
