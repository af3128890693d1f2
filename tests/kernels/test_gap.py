"""An output begins as far into a dying input as its kernel says, and no further."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import PlanError
from pipeline.graph.graph import Graph
from pipeline.kernels import Form, choose
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute, Plan, packed
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.support import Native, host
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
    gap = choose(form, host()).overlap(form, graph.input)
    bytes_ = graph.tensors[graph.output].size
    if gap is None:
        gap = -2 * bytes_
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
    plan = overlapping(graph, gap)
    frames = np.random.default_rng(seed).integers(-128, 128, (4, *graph.tensors[graph.input].shape))
    native = Native(tmp_path, graph, plan, files=generate(graph, plan, host(), {}))
    assert np.array_equal(native(frames), graph.outputs(frames))


@pytest.mark.parametrize("seed", quick(20, range(60)))
def test_a_row_begins_as_far_into_a_row_that_dies(seed: int) -> None:
    """As ``drawn``, said of one row by brute force: pixel n stays below what later ones read."""
    graph = drawn(seed)
    op = graph.operators[0]
    form = Form.whole(op, graph)
    source, target = (graph.tensors[name] for name in (graph.input, graph.output))
    made = replace(form.out, extents=(1, *target.shape[1:]), multiples=(True,) * 3)
    row = replace(form, parts={**form.parts, graph.output: made})
    gap = choose(row, host()).overlap(row, graph.input)
    window = op.terms(graph.tensors)[0].operands[0].windows[1]
    limits = [source.shape[1] * source.shape[2]]
    for column in range(1, target.shape[1]):
        taps = (column * window.stride + window.offset + t * window.dilation
                for t in range(window.count))  # fmt: skip
        inside = [tap for tap in taps if 0 <= tap < source.shape[1]]
        if inside:
            limits.append(min(inside) * source.shape[2] - column * target.shape[2])
    if min(limits) > -target.shape[1] * target.shape[2]:
        assert gap is not None and gap <= 2 * min(limits)
    if gap is not None and not any(getattr(op, "padding")):  # noqa: B009
        assert gap == 2 * min(limits)
