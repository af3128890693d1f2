"""Winograd's minimal filtering: byte for byte the graph's outputs, by its portable twin and on a
simulated core, and no layer that could leave the range in which it is exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.cortex_m.operators.winograd import ALIKE, SHIFTS, WEIGHTS
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.requant import PowerOfTwo
from pipeline.kernels import Form, named
from pipeline.kernels.cortex_m.winograd import LIFT, SPANS, exact, outputs_of_a_side
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Buffer, Plan
from tests.codegen.cortex_m.support import core, twin
from tests.codegen.cortex_m.winograd import ENDS, extreme, inputs, layer
from tests.comparing import equal
from tests.graphs import Net
from tests.kernels.layers import plan_by
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated

KERNELS = ("winograd", *(f"winograd_live{span}" for span in SPANS))

INPUTS = {
    2: np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]]),
    4: np.array(
        [[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
         [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]]
    ),
}  # fmt: skip
"""B of F(m x m, 3 x 3) transposed, by m."""

OUTPUTS = {
    2: np.array([[1, 1, 1, 0], [0, 1, -1, -1]]),
    4: np.array(
        [[2, -4, -4, 1, 1, 0], [0, -2, 2, 1, -1, 0], [0, -1, -1, 1, 1, 0], [0, -1, 1, 2, -2, 2]]
    ),
}
"""A transposed: in one direction 2**k of ``SHIFTS`` times what it is of real numbers."""


def drawn(seed: int) -> Graph:
    """A layer that has such a kernel."""
    for number in range(seed * 100, seed * 100 + 100):
        graph = layer(np.random.default_rng(number))
        if named("cortex_m.winograd", form_of(graph), core()).accepts(form_of(graph)):
            return graph
    raise AssertionError("none of 100")


def form_of(graph: Graph) -> Form:
    return Form.whole(graph.operators[-1], graph)


def planned(graph: Graph, seed: int) -> Plan:
    plan = plan_by(f"cortex_m.{KERNELS[seed % len(KERNELS)]}", graph, core())
    verify(plan, graph)
    return plan


@pytest.mark.parametrize("side", [2, 4])
def test_transforms_make_convolutions(side: int) -> None:
    rng = np.random.default_rng(side)
    g, d = rng.integers(-128, 128, (3, 3)), rng.integers(0, 256, (side + 2, side + 2))
    b, a, w = INPUTS[side], OUTPUTS[side], WEIGHTS[side]
    found = a @ ((w @ g @ w.T) * (b @ d @ b.T)) @ a.T
    direct = [[(g * d[y : y + 3, x : x + 3]).sum() for x in range(side)] for y in range(side)]
    large = np.array([(3 if side == 4 else 1) << k for k in SHIFTS[side]])
    equal(found, np.array(direct) * np.outer(large, large))
    assert b.sum(1).tolist() == list(ALIKE[side])


def test_words_hold_two_numbers() -> None:
    """Transformed weights and inputs fit 16 bits, and no lower half of a word is negative."""
    for side in (2, 4):
        assert 128 * np.abs(WEIGHTS[side]).sum(1).max() ** 2 < 1 << 15
        above, below = np.maximum(INPUTS[side], 0).sum(1), np.maximum(-INPUTS[side], 0).sum(1)
        most = 255 * (np.outer(above, above) + np.outer(below, below)).max()
        least = -255 * (np.outer(above, below) + np.outer(below, above)).max()
        lift = LIFT if side == 4 else 0
        assert most + lift < 1 << 15
        assert least + lift >= (0 if side == 4 else -(1 << 15))
    last = np.zeros((6, 6), int)
    last[4:, 4:] = 1
    assert (INPUTS[4] @ last @ INPUTS[4].T == 1).all()


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
    for number, word in enumerate(KERNELS):
        plan = planned(graph, number)

        def less(each: Buffer) -> Buffer:
            return replace(each, shape=(each.shape[0] - 1,)) if each.name == "beside" else each

        short = replace(plan, buffers=tuple(map(less, plan.buffers)))
        with pytest.raises(ThimbleError, match=rf"cortex_m\.{word} needs \d+ B of scratch"):
            generate(graph, short, core(), {})


def check(graph: Graph, seed: int, folder: Path) -> None:
    """By the portable twin: scratch is the end of the arena, and what lies behind is watched."""
    given = inputs(graph, np.random.default_rng(seed))
    found = twin(folder / f"{seed}", graph, planned(graph, seed))(given)
    equal(found, graph.outputs(given), seed=seed)


@pytest.mark.ci
def test_a_random_layer(tmp_path: Path) -> None:
    check(drawn(1), 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_layers(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + 50):
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


def check_simulated(graph: Graph, seed: int, board: str, folder: Path) -> None:
    hardware = board_named(board)
    plan = plan_by(f"cortex_m.{KERNELS[seed % len(KERNELS)]}", graph, hardware)
    size = built(folder, graph, hardware, plan)
    given = inputs(graph, np.random.default_rng(seed))
    runs = simulated(folder, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given), seed=seed)
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes


@needs_arm
@pytest.mark.ci
@pytest.mark.parametrize("number", [0, 2])
def test_extremes_on_a_cortex_m4(number: int, tmp_path: Path) -> None:
    """The second has a loop in its innermost loop, and steps behind it."""
    graph = extreme(*ENDS[number])
    assert outputs_of_a_side(graph.operators[-1], graph) == 4
    check_simulated(graph, number, "nucleo_f446re", tmp_path)


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize("board", ["nucleo_f446re", "nucleo_f767zi", "nucleo_u575zi"])
def test_random_layers_simulated(board: str, tmp_path: Path) -> None:
    for seed in range(300, 330):
        check_simulated(drawn(seed), seed, board, tmp_path / f"{seed}")
