"""Layers in place on kernels that gather the windows of some pixels before they write these: their
portable twin, with ASan and UBSan, gives the graph's outputs from tables, peels and torn pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.graph.graph import Graph
from pipeline.kernels import Form
from pipeline.kernels.cortex_m.gathered import GatheredConvolution, window
from pipeline.plan.vocabulary import Buffer, Plan, Table
from pipeline.search.chains import slots
from pipeline.search.chains.arrangement import Arrangement
from pipeline.strategies.base import LAYOUTS, Layout, Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.replace import Replace
from pipeline.strategies.single_transpose import SingleTranspose
from tests.codegen.cortex_m.support import core, kernels
from tests.codegen.support import checked, frames
from tests.graphs import Net
from tests.tiers import quick

BOARDS = ("nucleo_f446re", "nucleo_f767zi", "nucleo_u575zi")
STRATEGIES = (Herringbone, Replace, SingleTranspose)
GATHERED = {f"cortex_m.gathered_{word}" for word in ("conv2d", "depthwise", "pool", "sum")}


def chain(seed: int) -> Graph:
    """Channels that grow and shrink, of numbers that four divides or not; windows with padding,
    strides and dilation."""
    rng = np.random.default_rng(seed)
    sides = rng.integers(9, 13, 2)
    net = Net((int(sides[0]), int(sides[1]), int(rng.integers(1, 6))), rng, name="chain")
    valid = (0, 0, 0, 0)
    net.conv(int(rng.integers(5, 9)), (3, 3), padding=valid if seed % 2 else (1, 1, 1, 1))
    net.depthwise((3, 3), **({"stride": (2, 1)} if seed % 3 == 0 else {}))
    if seed % 4 == 1:
        net.depthwise((5, 6), padding=(2, 2, 2, 3))
    net.conv(int(rng.integers(8, 14)), (1, 1))
    edges = (1, 0, 0, 1) if seed % 3 == 2 else valid
    if seed % 2:
        net.maximum((2, 2), stride=(1, 1), padding=edges)
    else:
        net.mean((2, 2), stride=(2, 1), padding=edges)
    net.conv(int(rng.integers(14, 19)), (2, 3), padding=valid, dilation=(1, 1 + seed % 2))
    net.dense(int(rng.integers(6, 12)))
    net.dense(5)
    return net.graph()


def blocks(seed: int) -> Graph:
    """Residual blocks: rows of 5 to 11 pixels one by one, so that the last few are fewer than the
    others; windows of which some taps, or columns, never lie inside."""
    rng = np.random.default_rng(seed)
    height, width, channels = (int(rng.integers(*ends)) for ends in ((5, 8), (5, 12), (4, 11)))
    net = Net((height, width, 2), rng, name="blocks")
    net.conv(channels, (3, 3))
    for apart in (1, int(rng.integers(2, 13))):
        start = net.last
        for _ in range(2):
            net.conv(channels, (3, 3), padding=(apart,) * 4, dilation=(apart, apart))
        net.plus(*((net.last, start) if seed % 2 else (start, net.last)))
    net.conv(6, (3, 3), padding=(width,) * 4, dilation=(width, width))
    net.dense(5)
    return net.graph()


def check(graph: Graph, plan: Plan, seed: int, folder: Path) -> None:
    checked(folder, graph, plan, core(), frames(graph, 3, seed), interpreted=True)


def cases() -> list[tuple[type[Strategy], Layout, int]]:
    first = [(Herringbone, layout, 0) for layout in LAYOUTS]
    every = [(kind, layout, n) for n in range(12) for kind in STRATEGIES for layout in LAYOUTS]
    return [*first, *(case for case in every if case not in first)]


@pytest.mark.parametrize(("kind", "layout", "seed"), quick(0, cases(), ci=2))
def test_chains(kind: type[Strategy], layout: Layout, seed: int, tmp_path: Path) -> None:
    graph = chain(seed)
    plan = kind(layout=layout).plan(graph, core())
    check(graph, plan, seed, tmp_path)
    used = set(kernels(plan).values())
    assert "cortex_m.gathered_conv2d" in used and not any(name.startswith("int8.") for name in used)


@pytest.mark.parametrize("seed", quick(1, range(20), ci=1))
def test_blocks(seed: int, tmp_path: Path) -> None:
    graph = blocks(seed)
    plan = Herringbone().plan(graph, core())
    check(graph, plan, seed, tmp_path)
    used = set(kernels(plan).values())
    assert {"cortex_m.gathered_sum", "cortex_m.gathered_conv2d"} <= used
    assert not {"int8.add", "int8.conv2d"} & used


def test_pixels_that_are_left_have_code_of_their_own_where_it_pays() -> None:
    kernel = GatheredConvolution()
    found = dict[int, tuple[int, int]]()
    for width in (4, 5, 6, 7, 9, 10, 130):
        net = Net((1, width, 8), np.random.default_rng(width), name="row")
        net.conv(8, (1, 1))
        form = Form.whole(net.operators[0], net.graph())
        found[width] = kernel.together(form), kernel.tail(form)
        assert sum(n * pixels for pixels, n in kernel.blocks(form)) >= width
    # 5 = 3 + 2, 6 = 3 + 3, 7 = 4 + 3, 10 = 4 + 4 + 2; of 130 the last two are not worth it
    assert found == {4: (4, 4), 5: (3, 2), 6: (3, 3), 7: (4, 3), 9: (3, 3), 10: (4, 2),
                     130: (4, 4)}  # fmt: skip


def test_taps_that_are_never_inside_take_nothing() -> None:
    net = Net((20, 10, 8), np.random.default_rng(0), name="far")
    net.conv(8, (3, 3), padding=(16,) * 4, dilation=(16, 16))
    form = Form.whole(net.operators[0], net.graph())
    assert window(form) == (range(3), range(1, 2))
    assert GatheredConvolution().elements(form) == 3 * 8


def torn(buffers: Iterable[Buffer], seed: int) -> Iterable[Buffer]:
    """Channels of some pixels the other way round: what reads or writes these pixels stays so."""
    rng = np.random.default_rng(seed)
    for buffer in buffers:
        if not isinstance(buffer.map, Table) or len(buffer.shape) != 3:
            yield buffer
            continue
        cells = np.array(buffer.addresses(buffer.box))
        some = rng.random(buffer.shape[:2]) < 0.3
        cells[some] = cells[some][:, ::-1]
        yield replace(buffer, map=Table(tuple(cells.reshape(-1).tolist())))


def swapped(found: Arrangement, seed: int) -> Arrangement:
    """``found`` with torn pixels, in its runs, too."""
    places = dict(zip(found.buffers, torn(found.buffers, seed), strict=True))
    runs = (
        replace(r, sources=tuple(places[each] for each in r.sources), target=places[r.target])
        for r in found.runs
    )
    return replace(found, buffers=tuple(places.values()), runs=tuple(runs))


@pytest.mark.parametrize(
    ("network", "seed"), quick(0, [(kind, n) for n in range(20) for kind in (chain, blocks)], ci=2)
)
def test_torn_pixels(
    network: Callable[[int], Graph], seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrange = slots.arrange
    monkeypatch.setattr(slots, "arrange", lambda *args: swapped(arrange(*args), seed))
    graph = network(seed)
    plan = Herringbone().plan(graph, core())
    assert set(kernels(plan).values()) & GATHERED
    check(graph, plan, seed, tmp_path)


def test_others_are_left_to_other_kernels() -> None:
    """Whole rows that lie over nothing; cores without DSP; where there is no room for windows."""
    for strategy, hardware in (
        (Ordinary(), core()),
        (Herringbone(), core("cortex-m0plus")),
        (Herringbone(), core(sram_bytes=900)),
    ):
        assert not GATHERED & set(kernels(strategy.plan(chain(4), hardware)).values())
