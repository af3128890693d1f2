"""Kernels for a row, in blocks: their portable twin, and their assembly on simulated cores, give
the graph's outputs; the twin, with ASan and UBSan, touches nothing that it was not granted."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.cortex_m.by_row.convolution import KERNELS
from pipeline.codegen.cortex_m.by_row.depthwise_group import Group
from pipeline.codegen.render import FIRMWARE
from pipeline.graph.graph import Graph
from pipeline.hardware import FlashTiming
from pipeline.kernels.cortex_m import best_pixels
from pipeline.kernels.cortex_m.by_row.depthwise import groups
from pipeline.kernels.cortex_m.by_row.layout import RowLayout
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import Compute
from tests.codegen.cortex_m.by_row.layers import KINDS, image_network, network
from tests.codegen.cortex_m.by_row.support import by_rows, kernels
from tests.codegen.cortex_m.support import core, twin
from tests.codegen.int8.support import Native, frames
from tests.codegen.support import by_tier
from tests.comparing import equal
from tests.graphs import Net
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated
from tests.tiers import quick

SLOW_FLASH = replace(core(), flash_timing=FlashTiming(9, 8, 32, 8, 8))


def check(kind: str, seed: int, folder: Path) -> bool:
    """Whether the kernel was used: some requantizations it leaves to others."""
    graph, pixels, kernel = KINDS[kind](np.random.default_rng(seed))
    plan = by_rows(graph, SLOW_FLASH if seed % 2 else core(), pixels)
    verify(plan, graph)
    native = twin(folder / f"{seed}", graph, plan)
    given = frames(graph, 3, seed)
    equal(native(given), graph.outputs(given), kind=kind, seed=seed)
    used = kernels(plan)[graph.operators[-2].name]
    return used == kernel or (used, kernel) == ("cortex_m.row_fused", "cortex_m.row_pointwise")


@pytest.mark.parametrize(("kind", "seeds"), by_tier(KINDS, range(1), range(1, 4), range(4, 50)))
def test_random_layers(kind: str, seeds: range, tmp_path: Path) -> None:
    used = sum(check(kind, seed, tmp_path) for seed in seeds)
    assert used >= len(seeds) // 2


@pytest.mark.parametrize(
    ("kind", "seed", "used"), [("pointwise", 2004, True), ("pool", 112, True),
                               ("wide", 142, False), ("image", 114, False)],
    ids=["one row", "padded average", "all in the padding", "a row in the padding"],
)  # fmt: skip
def test_seldom_layers(kind: str, seed: int, used: bool, tmp_path: Path) -> None:
    """A pooling beside the layer, whose one row is where it is said to be before the call; an
    average over all rows, padded; windows that lie in the padding, or those of the last row, which
    is made where the row before it was read."""
    assert check(kind, seed, tmp_path) == used


def on_board(graph: Graph, board: str, folder: Path) -> set[str]:
    """The kernels that were used."""
    hardware = board_named(board)
    plan = by_rows(graph, hardware)
    verify(plan, graph)
    given = frames(graph, 3)
    size = built(folder, graph, hardware, plan)
    runs = simulated(folder, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))
    return set(kernels(plan).values())


@needs_arm
@pytest.mark.parametrize("board", quick(1, ["nucleo_f446re", "nucleo_f767zi", "nucleo_u575zi"]))
@pytest.mark.parametrize("seed", quick(1, range(4), ci=0))
def test_simulated(board: str, seed: int, tmp_path: Path) -> None:
    used = on_board(network(seed), board, tmp_path / "chain")
    used |= on_board(image_network(seed), board, tmp_path / "residual")
    words = ("added", "conv2d", "depthwise", "depthwise_wide", "image", "pointwise")
    assert {f"cortex_m.row_{word}" for word in words} <= used


@needs_arm
@pytest.mark.slow
@pytest.mark.parametrize("board", ["nucleo_f446re", "nucleo_f767zi"])
@pytest.mark.parametrize("kind", KINDS)
def test_many_layers_simulated(board: str, kind: str, tmp_path: Path) -> None:
    for seed in range(100, 150):
        graph, pixels, _ = KINDS[kind](np.random.default_rng(seed))
        hardware = board_named(board)
        plan, given = by_rows(graph, hardware, pixels), frames(graph, 3)
        folder = tmp_path / f"{seed}"
        size = built(folder, graph, hardware, plan)
        runs = simulated(folder, graph, hardware, size, given)
        equal(outputs(graph, runs), graph.outputs(given), kind=kind, seed=seed)


@needs_arm
def test_constants_are_in_reach(tmp_path: Path) -> None:
    """Constants that the compiler would load into floating-point registers are too far away."""
    net = Net((13, 10, 8), np.random.default_rng(1), name="reach")
    given = net.mean((1, 1), stride=(1, 1))
    made = net.conv(8, (3, 3), padding=(4, 4, 4, 4), dilation=(4, 4))
    net.mean((1, 1), stride=(1, 1))
    graph, hardware = net.graph(), board_named("nucleo_f446re")
    plan = by_rows(graph, hardware, {given: 4, made: 4})
    assert kernels(plan)[graph.operators[1].name] == "cortex_m.row_wide"
    built(tmp_path, graph, hardware, plan)


@pytest.mark.parametrize("word", KERNELS)
def test_convolutions_are_kept_to_core_registers(word: str) -> None:
    """All of them, whatever the compiler makes of the others today."""
    template = (FIRMWARE / "kernels" / "cortex_m" / "by_row" / f"{word}.c.j2").read_text()
    assert template.count("NN_CORE_REGISTERS NN_KERNEL") == template.count("NN_KERNEL") == 1


def test_registers_are_enough_for_every_width() -> None:
    every = product(range(1, 29), (1, 2), (0, 1), (0, 1))
    for columns, stride, left, right in every:
        outputs = (columns + left + right - 3) // stride + 1
        if outputs < 1 or (outputs - 1) * stride - left + 1 >= columns:
            continue
        rows = [RowLayout(n, 8, best_pixels(n)) for n in (columns, outputs)]
        for first, count in groups(*rows):
            group = Group(first, count, outputs, stride, left, rows[0], signed=True)
            assert group.vertical.lines and group.single.lines


@pytest.mark.parametrize("columns", quick(1, [5, 14, 3, 6, 7, 8], ci=2))
def test_best_widths(columns: int, tmp_path: Path) -> None:
    """Those of networks that 4 does not divide."""
    net = Net((5, columns, 2), np.random.default_rng(columns), name="widths")
    net.conv(8, (3, 3))
    net.depthwise((3, 3))
    net.conv(12, (1, 1))
    net.rescaled_mean()
    graph = net.graph()
    given = frames(graph, 3)
    words = {"image", "depthwise", "added"}
    images = [op.output for op in graph.operators if len(graph.tensors[op.output].shape) == 3]
    pixels = {name: best_pixels(graph.tensors[name].shape[1]) for name in images}
    for number, hardware in enumerate((core(), SLOW_FLASH)):
        plan = by_rows(graph, hardware, pixels)
        used = {kernel.removeprefix("cortex_m.row_") for kernel in kernels(plan).values()}
        assert used - words in ({"pointwise"}, {"fused"}) and words <= used
        assert ("fused" in used) == (columns in (5, 6)) or not number
        native = twin(tmp_path / f"{number}", graph, plan)
        equal(native(given), graph.outputs(given))


@pytest.mark.ci
def test_a_core_without_dsp_has_channels_last(tmp_path: Path) -> None:
    graph, small = network(0), replace(core("cortex-m0plus"), kernels="portable")
    plan = by_rows(graph, small)
    assert all(kernel.startswith("int8.") for kernel in kernels(plan).values())
    pixels = {op.output: best_pixels(graph.tensors[op.output].shape[1])
              for op in graph.operators if len(graph.tensors[op.output].shape) == 3}  # fmt: skip
    plan = by_rows(graph, small, pixels)
    verify(plan, graph)
    files, given = generate(graph, plan, small, {}), frames(graph, 3)
    native = Native(tmp_path, graph, plan, files=files)
    equal(native(given), graph.outputs(given))


def test_a_sum_of_rows_in_blocks_is_fast() -> None:
    plan = by_rows(image_network(0), core())
    sums = [s for s in plan.tracks[0].steps if isinstance(s, Compute) and s.op.startswith("add")]
    assert sums and all(step.kernel == "cortex_m.sum" for step in sums)


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
    native, given = twin(tmp_path, graph, plan), frames(graph, 3)
    equal(native(given), graph.outputs(given))
    _, first, rest = generate(graph, plan, core(), {})["model.c"].partition("void nn_lookup1(")
    assert first and "nn_multiply" in rest and "nn_element(" not in rest
