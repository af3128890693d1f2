"""One random layer at a time, by each set of kernels, whole or some rows at a time, in rings, in
blocks, in patches, or anywhere: their portable twin, and their assembly, give the graph's outputs;
the twin, with ASan and UBSan, touches nothing that it was not granted."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.hardware import FlashTiming, Hardware
from pipeline.kernels.cortex_m import best_pixels
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.patch import Patch
from pipeline.strategies.swap import Swap
from tests.codegen.cortex_m.layers import KINDS, ROWS, network
from tests.codegen.cortex_m.support import by_rows, core, fast, in_rows, kernels, with_scratch
from tests.codegen.int8.loops import scattered
from tests.codegen.int8.support import PLANS
from tests.codegen.support import by_tier, checked, frames, on_board
from tests.graphs import Chained, Net, random_graph
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

SLOW_FLASH = replace(core(), flash_timing=FlashTiming(9, 8, 32, 8, 8))
Found = tuple[Graph, Plan, Hardware, bool]
"""A layer, its plan, for which core, and whether the kernel that it is for was chosen."""


def whole(kind: str, seed: int, hardware: Hardware, prefix: str) -> Found:
    graph = KINDS[kind](np.random.default_rng(seed))
    strategy = Swap() if hardware.card.bytes else Ordinary()
    plan = strategy.plan(graph, hardware)
    used = kernels(plan)[graph.operators[-1].name]
    return graph, plan, hardware, used.startswith(prefix)


def dsp(kind: str, seed: int) -> Found:
    return whole(kind, seed, core(), "cortex_m.")


def thumb(kind: str, seed: int) -> Found:
    return whole(kind, seed, core("cortex-m0plus"), "thumb.")


def ordered(kind: str, seed: int) -> Found:
    """Weights in windows, in the order that the tensor has, of signed inputs."""
    while not KINDS[kind](np.random.default_rng(seed)).tensors["image"].dtype.signed:
        seed += 100
    hardware = replace(board_named("stm32f746g_sd"), sram_bytes=1 << 18, stack_reserve_bytes=0)
    graph, plan, _, used = whole(kind, seed, hardware, "cortex_m.ordered")
    op = graph.operators[-1]
    made = graph.tensors[op.output].shape
    wide = len(made) == 1 or made[1] > 1  # else two pixels at a time are one too many
    meant = wide and getattr(op, "groups", 1) == 1
    return graph, plan, hardware, used or not meant


def row(kind: str, seed: int) -> Found:
    """In blocks; some requantizations a kernel leaves to others."""
    graph, pixels, kernel = ROWS[kind](np.random.default_rng(seed))
    hardware = SLOW_FLASH if seed % 2 else core()
    plan = by_rows(graph, hardware, pixels)
    used, fused = kernels(plan)[graph.operators[-2].name], "cortex_m.row_fused"
    return graph, plan, hardware, used in (kernel, fused if kind == "pointwise" else kernel)


Draw = Callable[[str, int], Found]
PLAIN = ("conv2d", "pointwise", "depthwise", "dense")
LAYERS: list[tuple[Draw, str]] = [
    *((dsp, kind) for kind in KINDS),
    *((row, kind) for kind in ROWS),
    *((thumb, kind) for kind in (*PLAIN, "dilated")),
    *((ordered, kind) for kind in PLAIN),
]


@pytest.mark.parametrize(
    ("layer", "seeds"),
    by_tier(LAYERS, range(1), range(1, 4), range(4, 30)),
    ids=lambda v: f"{v[0].__name__} {v[1]}" if isinstance(v, tuple) else None,
)
def test_random_layers(layer: tuple[Draw, str], seeds: range, tmp_path: Path) -> None:
    draw, kind = layer
    used = 0
    for seed in seeds:
        graph, plan, hardware, as_meant = draw(kind, seed)
        checked(tmp_path / f"{seed}", graph, plan, hardware, frames(graph, 4, seed))
        used += as_meant
    assert used >= len(seeds) // 2


@pytest.mark.parametrize(
    ("kind", "seed", "used"), [("pointwise", 2004, True), ("pool", 112, True),
                               ("wide", 142, False), ("image", 114, True)],
    ids=["one row", "padded average", "all in the padding", "a row in the padding"],
)  # fmt: skip
def test_seldom_rows(kind: str, seed: int, used: bool, tmp_path: Path) -> None:
    """A pooling beside the layer, whose one row is where it is said to be before the call; an
    average over all rows, padded; windows that lie in the padding, or those of the last row, which
    is made where the row before it was read."""
    graph, plan, hardware, as_meant = row(kind, seed)
    checked(tmp_path, graph, plan, hardware, frames(graph, 3, seed))
    assert as_meant == used


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize("draw, kind", LAYERS)
def test_many_on_a_core(draw: Draw, kind: str, tmp_path: Path) -> None:
    names = {dsp: "nucleo_f446re", thumb: "nucleo_g0b1re", ordered: "stm32f746g_sd"}
    for seed in range(100, 108):
        graph, plan, *_ = draw(kind, seed)
        hardware = board_named(names.get(draw, ("nucleo_f446re", "nucleo_f767zi")[seed % 2]))
        on_board(tmp_path / f"{seed}", graph, hardware, plan)


IMAGES = {"conv2d": "conv2d", "dilated": "conv2d", "pointwise": "conv2d", "depthwise": "depthwise",
          "pool": "pool", "sum": "elements", "gate": "elements"}  # fmt: skip
"""Kinds of layers that make images, and the fast kernels for them."""


@pytest.mark.parametrize("anywhere", [False, True])
@pytest.mark.parametrize("kind", quick(("conv2d", "depthwise", "sum"), IMAGES))
@pytest.mark.parametrize(
    "seeds", quick(1, [range(1), range(1, 4), range(4, 12)], ci=1), ids=["few", "more", "most"]
)
def test_layers(kind: str, anywhere: bool, seeds: range, tmp_path: Path) -> None:
    """Expect no fast sums of several rows at once, each anywhere."""
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
    Chained(net).conv(24, (1, 1)).depthwise()
    return Chained(net).plus(net.conv(8, (1, 1)), start).maximum((2, 2)).dense(5).graph()


@pytest.mark.parametrize("seed", quick(1, range(4), ci=1))
def test_patches_as_wide_as_the_image(seed: int, tmp_path: Path) -> None:
    """Each by itself, or in a loop whose rows go round rings (the last seed)."""
    graph = inverted_residual(seed)
    plan = Patch(rows=3, columns=1).plan(graph, core())
    native = checked(tmp_path, graph, plan, core(), frames(graph, 4, seed))
    assert fast(native, "conv2d") >= 2 and fast(native, "depthwise")
    assert all(kernel.startswith("cortex_m.") for kernel in kernels(plan).values())


def test_tiles_have_one_copy_of_weights(tmp_path: Path) -> None:
    """Those at an edge, too, beyond which a row of the kernel always reaches."""
    net = Chained(Net((6, 6, 3), np.random.default_rng(1), name="edges"))
    net.maximum((3, 3), padding=(2, 2, 2, 2), dilation=(2, 2), stride=(1, 1))
    graph = net.conv(4, (5, 5), padding=(2, 2, 2, 2)).graph()
    plan = Patch(rows=3, columns=3).plan(graph, core())
    checked(tmp_path, graph, plan, core(), frames(graph, 4))
    assert generate(graph, plan, core(), {})["model.c"].count("channels by two elements") == 1


@pytest.mark.parametrize(("seed", "how"), quick(1, product(range(8), ("tiles", "rows")), ci=2))
def test_a_core_without_dsp(seed: int, how: str, tmp_path: Path) -> None:
    """Rows that lie anywhere, and tiles."""
    graph = inverted_residual(seed)
    small = core("cortex-m0plus", 3000 if how == "rows" else 1 << 24)
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
    graph, words = net.graph(), {"conv2d", "depthwise", "pool"}
    for number, hardware in enumerate((core(), SLOW_FLASH)):
        plan = by_rows(graph, hardware, images(graph))
        used = {kernel.removeprefix("cortex_m.row_") for kernel in kernels(plan).values()}
        assert used - {"fused"} == words
        assert ("fused" in used) == (columns in (5, 6)) or not number
        checked(tmp_path / f"{number}", graph, plan, hardware)


@pytest.mark.parametrize("kind", ["multiply", "prelu"])
def test_a_constant_of_each_channel_in_blocks(kind: str, tmp_path: Path) -> None:
    net = Net((3, 8, 4), np.random.default_rng(5))
    made = net.conv(3, (1, 1))
    scales = net.constant("scales", net.rng.integers(-128, 128, (3,)))
    scaled = net.times(made, scales) if kind == "multiply" else net.slopes((3,))
    graph = Chained(net).conv(4, (1, 1)).graph()
    checked(tmp_path, graph, by_rows(graph, core(), dict.fromkeys((made, scaled), 4)), core())


@pytest.mark.parametrize("columns", [8, 10])
def test_elements_are_walked_as_they_lie_in_blocks(columns: int, tmp_path: Path) -> None:
    """Look-ups, and products with a gate of the channels: no table has an element's place."""
    net = Net((4, columns, 8), np.random.default_rng(1), name="gated")
    made = net.conv(12, (1, 1))
    looked_up = net.lookup()
    net.rescaled_mean()
    gated = net.times(looked_up, net.lookup(net.conv(12, (1, 1))))
    graph = Chained(net).conv(8, (1, 1)).graph()
    plan = by_rows(graph, core(), dict.fromkeys((made, looked_up, gated), 4))
    native = checked(tmp_path, graph, plan, core())
    _, first, rest = native.files["model.c"].partition("void nn_lookup1_row(")
    assert first and "nn_multiply" in rest and "nn_element(" not in rest
