"""Kernels on rows: some at a time, one after the other, in rings, in blocks, in patches, or
anywhere."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen.cortex_m.by_row.convolution import KERNELS
from pipeline.codegen.cortex_m.by_row.depthwise_group import Group
from pipeline.codegen.render import FIRMWARE
from pipeline.graph.graph import Graph
from pipeline.kernels.cortex_m import best_pixels
from pipeline.kernels.cortex_m.by_row.depthwise import groups
from pipeline.kernels.cortex_m.by_row.layout import RowLayout
from pipeline.strategies.joint import Joint
from pipeline.strategies.patch import Patch
from tests.codegen.cortex_m.by_row.layers import image_network, network
from tests.codegen.cortex_m.layers import KINDS
from tests.codegen.cortex_m.support import by_rows, core, fast, in_rows, kernels, with_scratch
from tests.codegen.cortex_m.test_layers import SLOW_FLASH
from tests.codegen.int8.loops import scattered
from tests.codegen.int8.plans import PLANS
from tests.codegen.support import checked, frames
from tests.graphs import Net, random_graph
from tests.tiers import quick

IMAGES = {"conv2d": "conv2d", "dilated": "conv2d", "pointwise": "conv2d", "depthwise": "depthwise",
          "pool": "pool", "sum": "sum", "gate": "gate"}  # fmt: skip
"""Kinds of layers that make images, and the fast kernels for them."""


@pytest.mark.parametrize("anywhere", [False, True])
@pytest.mark.parametrize("kind", quick(("conv2d", "depthwise", "sum"), IMAGES))
@pytest.mark.parametrize(
    "seeds", quick(1, [range(1), range(1, 4), range(4, 12)], ci=1), ids=["few", "more", "most"]
)
def test_layers(kind: str, anywhere: bool, seeds: range, tmp_path: Path) -> None:
    """Of several rows at once, each anywhere, there are no fast sums."""
    used = 0
    for seed in seeds:
        graph = KINDS[kind](np.random.default_rng(seed))
        plan = in_rows(graph, seed)
        if anywhere:
            plan = scattered(plan, graph, "rows", seed)
        given = frames(graph, 4, seed)
        used += fast(checked(tmp_path / f"{seed}", graph, plan, core(), given), IMAGES[kind])
    assert used >= (len(seeds) // 3 if anywhere else len(seeds) * 2 // 3)


@pytest.mark.parametrize("seed", quick(1, range(3000, 3012), ci=2))
def test_networks_of_rows_anywhere(seed: int, tmp_path: Path) -> None:
    graph = random_graph(seed)
    plan = scattered(in_rows(graph, seed), graph, "rows", seed)
    checked(tmp_path, graph, plan, core(), frames(graph, 4, seed))


def test_rings(tmp_path: Path) -> None:
    graph, plan = PLANS["row ring"]()
    native = checked(tmp_path, graph, with_scratch(plan), core())
    assert fast(native, "conv2d") and "% 3" in native.files["model.c"]


def inverted_residual(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    net = Net((int(rng.integers(12, 17)), int(rng.integers(9, 14)), 3), rng, name="residual")
    net.conv(8, stride=(2, 2) if seed % 2 else (1, 1))
    start = net.last
    net.conv(24, (1, 1))
    net.depthwise()
    net.plus(net.conv(8, (1, 1)), start)
    net.maximum((2, 2))
    net.dense(5)
    return net.graph()


@pytest.mark.parametrize("seed", quick(1, range(4), ci=1))
def test_patches_as_wide_as_the_image(seed: int, tmp_path: Path) -> None:
    """Each by itself, or in a loop whose rows go round rings (the last seed); what a patch has of
    its last rows may be less than of others."""
    graph = inverted_residual(seed)
    plan = Patch(rows=3, columns=1).plan(graph, core())
    native = checked(tmp_path, graph, plan, core(), frames(graph, 4, seed))
    assert fast(native, "conv2d") >= 2 and fast(native, "depthwise")
    assert all(kernel.startswith("cortex_m.") for kernel in kernels(plan).values())


@pytest.mark.parametrize(("seed", "how"), quick(1, product(range(8), ("tiles", "rows")), ci=2))
def test_a_core_without_dsp(seed: int, how: str, tmp_path: Path) -> None:
    """Rows that lie anywhere, and tiles."""
    graph, small = (
        inverted_residual(seed),
        core("cortex-m0plus", 3000 if how == "rows" else 1 << 24),
    )
    plan = (Joint() if how == "rows" else Patch(rows=2, columns=2)).plan(graph, small)
    assert any(kernel.startswith("thumb.") for kernel in kernels(plan).values())
    checked(tmp_path, graph, plan, small)


def images(graph: Graph) -> dict[str, int]:
    """The best pixels of a block, of all images but the first."""
    shapes = {op.output: graph.tensors[op.output].shape for op in graph.operators}
    return {name: best_pixels(shape[1]) for name, shape in shapes.items() if len(shape) == 3}


@pytest.mark.ci
def test_blocks_by_portable_kernels(tmp_path: Path) -> None:
    graph, small = network(0), replace(core("cortex-m0plus"), kernels="portable")
    assert all(k.startswith("int8.") for k in kernels(by_rows(graph, small)).values())
    checked(tmp_path, graph, by_rows(graph, small, images(graph)), small)


@pytest.mark.parametrize("columns", quick(1, [5, 14, 3, 6, 7, 8], ci=2))
def test_best_widths(columns: int, tmp_path: Path) -> None:
    """Those of networks that 4 does not divide."""
    net = Net((5, columns, 2), np.random.default_rng(columns), name="widths")
    net.conv(8, (3, 3))
    net.depthwise((3, 3))
    net.conv(12, (1, 1))
    net.rescaled_mean()
    graph, words = net.graph(), {"image", "depthwise", "added"}
    for number, hardware in enumerate((core(), SLOW_FLASH)):
        plan = by_rows(graph, hardware, images(graph))
        used = {kernel.removeprefix("cortex_m.row_") for kernel in kernels(plan).values()}
        assert used - words in ({"pointwise"}, {"fused"}) and words <= used
        assert ("fused" in used) == (columns in (5, 6)) or not number
        checked(tmp_path / f"{number}", graph, plan, hardware)


def test_a_sum_of_rows_in_blocks_is_fast() -> None:
    sums = {op: k for op, k in kernels(by_rows(image_network(0), core())).items() if "add" in op}
    assert set(sums.values()) == {"cortex_m.sum"}


@pytest.mark.parametrize("columns", [8, 10])
def test_elements_are_walked_as_they_lie_in_blocks(columns: int, tmp_path: Path) -> None:
    """Look-ups, and products with a gate of the channels: no table has an element's place."""
    net = Net((4, columns, 8), np.random.default_rng(1), name="gated")
    made = net.conv(12, (1, 1))
    looked_up = net.lookup()
    net.rescaled_mean()
    gated = net.times(looked_up, net.lookup(net.conv(12, (1, 1))))
    net.conv(8, (1, 1))
    graph = net.graph()
    plan = by_rows(graph, core(), dict.fromkeys((made, looked_up, gated), 4))
    native = checked(tmp_path, graph, plan, core())
    _, first, rest = native.files["model.c"].partition("void nn_lookup1(")
    assert first and "nn_multiply" in rest and "nn_element(" not in rest


def test_convolutions_are_kept_to_core_registers() -> None:
    """All of them, whatever the compiler makes of the others today."""
    for word in KERNELS:
        template = (FIRMWARE / "kernels" / "cortex_m" / "by_row" / f"{word}.c.j2").read_text()
        kept, every = (template.count(w) for w in ("NN_CORE_REGISTERS NN_KERNEL", "NN_KERNEL"))
        assert kept == every == 1


def test_registers_are_enough_for_every_width() -> None:
    for columns, stride, left, right in product(range(1, 29), (1, 2), (0, 1), (0, 1)):
        outputs = (columns + left + right - 3) // stride + 1
        if outputs < 1 or (outputs - 1) * stride - left + 1 >= columns:
            continue
        rows = [RowLayout(n, 8, best_pixels(n)) for n in (columns, outputs)]
        for first, count in groups(*rows):
            group = Group(first, count, outputs, stride, left, rows[0], signed=True)
            assert group.vertical.lines and group.single.lines
