"""Tiles as images of their own: which padding is left to them, and kernels that make them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.kernels.own_image import own_image
from pipeline.plan.cost import cost
from pipeline.plan.maps import Affine, Rows
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Buffer, Compute, Plan, Slice, packed
from pipeline.schedules.lower import load_of
from pipeline.strategies.patch import Patch
from tests.codegen.cortex_m.support import core, twin
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.graphs import Net
from tests.strategies.patch.test_patch import random_images
from tests.tiers import quick


def tile(columns: tuple[int, int], **changes: object) -> tuple[Compute, dict[str, Buffer], Net]:
    """A step that makes rows 0 to 4 and some columns of a 3x3 convolution of 8 x 8 pixels."""
    net = Net((8, 8, 2), np.random.default_rng(0), name="net")
    made = net.conv(3, (3, 3), padding=(1, 1, 1, 1), stride=(1, 1), **changes)
    low, stop = max(0, columns[0] - 1), min(8, columns[1] + 1)
    buffers = {
        "image": Buffer("image", "image", "sram", (8, 8, 2), 8, packed((8, 8, 2), 8)),
        "out": Buffer("out", made, "sram", (8, 8, 3), 8, packed((8, 8, 3), 8, 1024)),
    }
    out = Slice("out", (0, columns[0], 0), (4, columns[1] - columns[0], 3))
    given = Slice("image", (0, low, 0), (5, stop - low, 2))
    op = net.graph().operators[0]
    return Compute(op.name, out, (given,)), buffers, net


@pytest.mark.parametrize(
    ("columns", "left", "right"), [((0, 3), 1, 0), ((3, 6), 0, 0), ((5, 8), 0, 1)]
)
def test_what_lies_beyond_the_image_is_padding(
    columns: tuple[int, int], left: int, right: int
) -> None:
    step, buffers, net = tile(columns)
    own = own_image(step, buffers, net.graph())
    assert own is not None
    (op,) = own.graph.operators
    assert getattr(op, "padding") == (1, 0, left, right)  # noqa: B009
    made = own.buffers[own.step.out.buffer]
    assert made.shape == (4, columns[1] - columns[0], 3)
    whole = buffers["out"].addresses(((0, 4), columns, (0, 3)))
    equal(made.addresses(made.box), whole)


def test_rows_that_lie_anywhere_do_so_in_the_tile() -> None:
    step, buffers, net = tile((3, 6))
    rows = Rows((640, 0, 160, 320, 480, 800, 960, 1120), (4, 2))
    buffers["image"] = Buffer("image", "image", "sram", (8, 8, 2), 8, rows)
    own = own_image(step, buffers, net.graph())
    assert own is not None
    given = own.buffers[own.step.ins[0].buffer]
    assert given.shape == (5, 5, 2) and isinstance(given.map, Rows)
    part = buffers["image"].addresses(((0, 5), (2, 7), (0, 2)))
    equal(given.addresses(given.box), part)


def test_all_columns_are_no_tile() -> None:
    step, buffers, net = tile((0, 8))
    assert own_image(step, buffers, net.graph()) is None


def test_what_turns_in_a_ring_is_no_image() -> None:
    step, buffers, net = tile((0, 3))
    ring = Affine(0, (16, 4, 2), (0, 4, 0))
    buffers["image"] = Buffer("image", "image", "sram", (8, 8, 2), 8, ring)
    assert own_image(step, buffers, net.graph()) is None


def tiles_of(plan: Plan) -> list[Compute]:
    steps = (step for step in plan.tracks[0].steps if isinstance(step, Compute))
    return [step for step in steps if step.out.size[1:2] < plan.buffer[step.out.buffer].shape[1:2]]


@pytest.mark.parametrize("seed", quick(1, range(40), ci=1))
def test_random_patches(seed: int, tmp_path: Path) -> None:
    graph = random_images(seed)
    strategy = Patch(rows=2, columns=3)
    plan = strategy.plan(graph, core())
    verify(plan, graph)
    _, regions = strategy.regions(graph, core())
    assert cost(plan, graph, core()).pmu_bytes <= load_of(regions, graph, core()) / 2
    given = frames(graph, 3, seed)
    equal(twin(tmp_path, graph, plan)(given), graph.outputs(given))
    assert any(step.kernel.startswith("cortex_m.") for step in tiles_of(plan))
