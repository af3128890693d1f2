"""An output begins as far into a dying input as its kernel says, and no further; and where a row
may be written over another, against all that is read and written one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import PlanError
from pipeline.graph.graph import Graph
from pipeline.kernels import Form, choose, named
from pipeline.kernels.cortex_m.by_row.base import RowKernel, Turns
from pipeline.kernels.gap import Gap, pixel_gap
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan, packed
from pipeline.search.layouts import form_of_a_row
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.by_row.layers import KINDS
from tests.codegen.cortex_m.support import core
from tests.codegen.int8.support import Native, host
from tests.comparing import equal
from tests.graphs import Net
from tests.tiers import quick


def drawn(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    net = Net(tuple(int(n) for n in rng.integers(3, 9, 3)), rng, name="net")
    height, width, channels = net.shape
    window = (int(rng.integers(1, min(4, height) + 1)), int(rng.integers(1, min(4, width) + 1)))
    stride = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    padding = tuple(int(rng.integers(0, k)) for k in (window[0], window[0], window[1], window[1]))
    match rng.integers(4):
        case 0:
            net.conv(int(rng.integers(1, 9)), window, stride=stride, padding=padding)
        case 1:
            net.depthwise(window, stride=stride, padding=padding)
        case 2:
            net.maximum(window, stride=stride, padding=padding)
        case _:
            far = (2, 2) if height > 4 and width > 4 else (1, 1)
            net.conv(channels, (2, 2), dilation=far)
    return net.graph()


def overlapping(graph: Graph, gap: int) -> Plan:
    """The output begins ``gap`` nibbles after the input."""
    plan = Ordinary().plan(graph, host(1 << 20))
    op = graph.operators[0]
    (step,) = plan.tracks[0].steps
    assert isinstance(step, Compute)
    start = 2 * graph.tensors[graph.output].size
    places = {graph.input: start, graph.output: start + gap}
    buffers = tuple(
        replace(b, map=packed(b.shape, b.bits, places[b.tensor])) if b.tensor in places else b
        for b in plan.buffers
    )
    form = Form.whole(op, graph, [graph.input])
    kernel = choose(form, host())
    step = replace(step, unit=kernel.unit(form), kernel=kernel.name)
    track = replace(plan.tracks[0], steps=(step,))
    return replace(plan, buffers=buffers, tracks=(track,))


@pytest.mark.parametrize("seed", quick(20, range(60)))
def test_the_gap_is_the_largest(seed: int) -> None:
    graph = drawn(seed)
    form = Form.whole(graph.operators[0], graph)
    found = choose(form, host()).overlap(form, graph.input)
    gap = found.forwards if found else -2 * graph.tensors[graph.output].size
    assert gap % 2 == 0
    verify(overlapping(graph, gap), graph)
    if gap < 2 * graph.tensors[graph.input].size:
        with pytest.raises(PlanError):
            verify(overlapping(graph, gap + 2), graph)


@pytest.mark.parametrize("seed", range(3))
def test_code_overwrites_its_input_so_far(seed: int, tmp_path: Path) -> None:
    graph = drawn(seed)
    form = Form.whole(graph.operators[0], graph)
    gap = choose(form, host()).overlap(form, graph.input)
    assert gap is not None
    plan = overlapping(graph, gap.forwards)
    frames = np.random.default_rng(seed).integers(-128, 128, (4, *graph.tensors[graph.input].shape))
    native = Native(tmp_path, graph, plan, files=generate(graph, plan, host(), {}))
    equal(native(frames), graph.outputs(frames))


@pytest.mark.parametrize("delay", range(3))
@pytest.mark.parametrize("seed", quick(8, range(40), ci=8))
def test_a_row_begins_as_far_from_a_row_that_dies(seed: int, delay: int) -> None:
    """By brute force: wherever a row is written, in either order, nothing is lost exactly where the
    gap says so."""
    graph = drawn(seed)
    op = graph.operators[0]
    source, target = (graph.tensors[name] for name in (graph.input, graph.output))
    form = Form.whole(op, graph)
    made = replace(form.out, extents=(1, *target.shape[1:]), multiples=(True,) * 3)
    row = replace(form, parts={**form.parts, graph.output: made})
    under, over = (2 * tensor.shape[1] * tensor.shape[2] for tensor in (source, target))
    gap = pixel_gap(row, graph.input, delay) or Gap(-over, under)
    window = op.terms(graph.tensors)[0].operands[0].windows[1]
    width, depth, channels = source.shape[1], source.shape[2], target.shape[2]
    reads = [
        {column for t in range(window.count)
         if 0 <= (column := x * window.stride + window.offset + t * window.dilation) < width}
        for x in range(target.shape[1])
    ]  # fmt: skip

    def kept(begin: int, order: list[int]) -> bool:
        """Of bytes: pixel n is written once the inputs of the next ``delay`` ones are read."""
        for number, x in enumerate(order):
            later = set[int]().union(*(reads[n] for n in order[number + 1 + delay :]))
            written = range(begin + x * channels, begin + (x + 1) * channels)
            if any(cell // depth in later for cell in written if 0 <= cell < width * depth):
                return False
        return True

    for begin in range(-over // 2 + 1, under // 2):
        order = list(range(target.shape[1]))
        assert kept(begin, order) or 2 * begin > gap.forwards
        assert kept(begin, order[::-1]) or 2 * begin < gap.backwards
        if 2 * begin <= gap.forwards:
            assert kept(begin, order)
        if 2 * begin >= gap.backwards:
            assert kept(begin, order[::-1])


def test_a_gap_leaves_out_intervals() -> None:
    gap = Gap(-4, 6, (0,))
    assert gap.apart(20, 20) == ((-4, 0), (0, 6))
    assert gap.apart(20, 20, backwards=False) == ((-4, 0), (0, 20))
    assert Gap(0, 0).apart(8, 8) == ()
    assert (
        gap.shared(20, 20) == 20 and Gap(-4).shared(20, 20) == 16 and Gap(-20).shared(20, 20) == 0
    )


def conflicts(turns: Turns, apart: int) -> bool:
    """Whether a byte that is written lies where one is still to be read."""
    return any(
        0 <= at + apart < len(turns.read) and turns.read[at + apart] > turn
        for at, turn in enumerate(turns.written)
    )


def allowed(turns: Turns) -> set[int]:
    every = range(-len(turns.written), len(turns.read) + 1)
    return {apart for apart in every if not turns.forbids(apart)}


@pytest.mark.parametrize("seed", range(40))
def test_what_is_allowed_loses_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes, most = rng.integers(1, 12, 2), int(rng.integers(1, 6))
    turns = Turns(rng.integers(-1, most, sizes[0]), rng.integers(0, most, sizes[1]))
    assert not any(conflicts(turns, apart) for apart in allowed(turns))
    assert not conflicts(turns, turns.latest) and not conflicts(turns, turns.earliest)
    assert turns.exactly == (not conflicts(turns, 0))


@pytest.mark.parametrize("read, written, latest, earliest, exactly", [
    ([0, 1, 2], [0, 1, 2], 0, 3, True),  # forwards
    ([1, 0], [1, 0], -2, 0, True),  # backwards
    ([0, 0, 1, 1], [0, 1], 1, 4, True),  # two for one
    ([0, 1, 0, 1], [0, 1, 0, 1], -2, 4, True),  # two channels in two blocks
    ([0, 0], [0, 0, 0], -1, 0, True),  # all is read first
    ([2, 2], [0, 1], -2, 2, False),
])  # fmt: skip
def test_by_hand(
    read: list[int], written: list[int], latest: int, earliest: int, exactly: bool
) -> None:
    turns = Turns(np.array(read), np.array(written))
    assert (turns.latest, turns.earliest, turns.exactly) == (latest, earliest, exactly)


@pytest.mark.parametrize("kind", KINDS)
def test_what_kernels_say(kind: str) -> None:
    """Each byte that a layer reads or makes has its turn, and those of a part follow each other."""
    for seed in range(30):
        graph, pixels, name = KINDS[kind](np.random.default_rng(seed))
        op = graph.operators[1]
        if kind in ("added", "concat", "dense", "gate"):  # apart, or element by element
            return
        form = form_of_a_row(op, graph, pixels)
        kernel = named(name, form, core())
        assert isinstance(kernel, RowKernel)
        if not kernel.accepts(form):
            continue
        turns = kernel.turns(form)
        assert len(turns.written) == np.prod(graph.tensors[op.output].shape[1:])
        assert len(turns.read) == np.prod(graph.tensors[op.inputs[0]].shape[1:])
        assert turns.written.min() == 0 and turns.written.max() >= turns.read.max()
        over = replace(form, overlaps=frozenset({op.inputs[0]}))
        assert kernel.accepts(over) == (kernel.overlap(form, op.inputs[0]) is not None)
