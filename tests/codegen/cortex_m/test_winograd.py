"""Winograd's minimal filtering: byte for byte the graph's outputs, by its portable twin and on a
simulated core, and no layer that could leave the range in which it is exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.graph.requant import PowerOfTwo
from pipeline.kernels import Form, named
from pipeline.kernels.cortex_m.winograd import SPANS, exact, outputs_of_a_side
from tests.codegen.cortex_m.layers import clipped_at_zero, requantized
from tests.codegen.cortex_m.support import core
from tests.codegen.support import checked, on_board
from tests.graphs import Net
from tests.kernels.layers import plan_by
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

KERNELS = ("winograd", *(f"winograd_live{span}" for span in SPANS))


def layer(rng: np.random.Generator) -> Graph:
    """Of any size from 2 x 2 outputs on, channels that four and two do not divide, any padding."""
    height, width = (int(n) for n in rng.integers(2, 15, 2))
    depth, channels = int(rng.integers(1, 21)), int(rng.integers(2, 8))
    padding = (1, 1, 1, 1)
    if rng.random() < 0.4 and min(height, width) > 3:
        padding = tuple(int(n) for n in rng.integers(0, 2, 4))  # type: ignore[assignment]
    net = Net((height, width, depth), rng, "uint8" if rng.random() < 0.25 else "int8", "layer")
    net.conv(channels, (3, 3), padding=padding, requant=requantized(rng, channels, 9 * depth))
    clipped_at_zero(net)
    return net.graph()


ENDS = ((127, 78), (-128, 78), (0, 226))
"""Weights that are all alike, or, 0, the ends in turns along all axes; and the greatest multiple of
two channels with which these are in the range of F(4 x 4, 3 x 3)."""


def extreme(weight: int, depth: int, kind: str = "int8") -> Graph:
    """Of weights at an end of what bytes hold, see ``ENDS``."""
    net = Net((6, 8, depth), np.random.default_rng(depth), kind, "layer")
    net.conv(2, (3, 3))
    op = net.operators[-1]
    assert isinstance(op, Conv2d)
    weights = net.constants[op.parameters[0]]
    turns = np.where(np.indices(weights.shape).sum(0) % 2, 127, -128)
    weights[:] = weight or turns
    return net.graph()


def inputs(graph: Graph, rng: np.random.Generator) -> np.ndarray:
    """At random, and as low and as high as an input can be, all of it or pixel by pixel."""
    tensor = graph.tensors[graph.input]
    low, high = tensor.dtype.minimum, tensor.dtype.maximum
    ends = rng.choice([low, high], tensor.shape)
    some = rng.integers(low, high + 1, tensor.shape)
    return np.stack([some, ends, np.full(tensor.shape, low), np.full(tensor.shape, high)])


def drawn(seed: int) -> Graph:
    """A layer that has such a kernel."""
    for number in range(seed * 100, seed * 100 + 100):
        graph = layer(np.random.default_rng(number))
        if named("cortex_m.winograd", form_of(graph), core()).accepts(form_of(graph)):
            return graph
    raise AssertionError("none of 100")


def form_of(graph: Graph) -> Form:
    return Form.whole(graph.operators[-1], graph)


@pytest.mark.parametrize(("weight", "depth"), ENDS)
def test_the_range_is_the_sums(weight: int, depth: int) -> None:
    """Scaled sums of the extremes take 31 bits and a sign, and two channels more do not."""
    inside, outside = extreme(weight, depth), extreme(weight, depth + 2)
    assert exact(inside.operators[-1], inside, 4)
    assert not exact(outside.operators[-1], outside, 4)
    assert exact(outside.operators[-1], outside, 2)


def test_other_layers_are_left_to_other_kernels() -> None:
    def why(graph: Graph, **part: object) -> str:
        form = replace(form_of(graph), **part)  # type: ignore[arg-type]
        return named("cortex_m.winograd", form, core()).why_not(form)

    def conv(shape: tuple[int, int, int], *kernel: object, **options: object) -> Graph:
        net = Net(shape, np.random.default_rng(0), name="layer")
        net.conv(4, *kernel, **options)  # type: ignore[arg-type]
        return net.graph()

    one = conv((8, 8, 4))
    assert not why(one)
    assert "3x3 convolutions of stride 1" in why(conv((8, 8, 4), stride=(2, 1)))
    for graph in (
        conv((8, 8, 4), (1, 1)), conv((8, 8, 4), dilation=(2, 2)), conv((1, 8, 4)),
        conv((8, 8, 4), padding=(2, 1, 1, 1)), conv((8, 8, 4), requant=PowerOfTwo(right_shift=8)),
    ):  # fmt: skip
        assert why(graph)
    assert why(one, partial=True) and why(one, overlaps=frozenset({"image"}))
    some = replace(form_of(one).parts["conv0"], extents=(4, 8, 4))
    assert why(one, parts={**form_of(one).parts, "conv0": some})
    far = conv((4, 4, 9000))
    assert outputs_of_a_side(far.operators[-1], far) == 0 and why(far)


def test_less_scratch_is_refused() -> None:
    graph = drawn(0)
    for word in KERNELS:
        plan = plan_by(f"cortex_m.{word}", graph, core())
        (beside,) = (each for each in plan.buffers if each.name == "beside")
        less = replace(beside, shape=(beside.shape[0] - 1,))
        short = replace(plan, buffers=(*(b for b in plan.buffers if b is not beside), less))
        with pytest.raises(ThimbleError, match=rf"cortex_m\.{word} needs \d+ B of scratch"):
            generate(graph, short, core(), {})


def check(graph: Graph, seed: int, folder: Path, board: str = "") -> None:
    """By the portable twin: scratch is the end of the arena, and what lies behind is watched; or
    on a board."""
    given = inputs(graph, np.random.default_rng(seed))
    hardware = board_named(board) if board else core()
    plan = plan_by(f"cortex_m.{KERNELS[seed % len(KERNELS)]}", graph, hardware)
    if board:
        on_board(folder / f"{seed}", graph, hardware, plan, given)
    else:
        checked(folder / f"{seed}", graph, plan, hardware, given)


@pytest.mark.parametrize(
    "seeds", quick(0, [range(1, 2), *(range(n, n + 50) for n in range(0, 200, 50))], ci=1), ids=str
)
def test_random_layers(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        check(drawn(seed), seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(ENDS)))
def test_extremes(number: int, tmp_path: Path) -> None:
    """Inside of the range of F(4 x 4, 3 x 3), and just outside, where it is F(2 x 2, 3 x 3)."""
    weight, depth = ENDS[number]
    for seed, more in enumerate((0, 2)):
        for kind in ("int8", "uint8"):
            graph = extreme(weight, depth + more, kind)
            assert outputs_of_a_side(graph.operators[-1], graph) == (2 if more else 4)
            check(graph, seed, tmp_path / kind)


@needs_arm
@pytest.mark.ci
@pytest.mark.parametrize("number", [0, 2])
def test_extremes_on_a_cortex_m4(number: int, tmp_path: Path) -> None:
    """The second has a loop in its innermost loop, and steps behind it."""
    graph = extreme(*ENDS[number])
    assert outputs_of_a_side(graph.operators[-1], graph) == 4
    check(graph, number, tmp_path, "nucleo_f446re")


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize("board", ["nucleo_f446re", "nucleo_f767zi", "nucleo_u575zi"])
def test_random_layers_simulated(board: str, tmp_path: Path) -> None:
    for seed in range(300, 330):
        check(drawn(seed), seed, tmp_path, board)
