"""Kernels of 4-bit networks on cores other than AVR, and input that streams in on any of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.hardware import Hardware, Memory
from pipeline.plan.verify import verify
from pipeline.plan.vocabulary import (
    Buffer,
    Compute,
    Lin,
    Loop,
    Move,
    Plan,
    Slice,
    Step,
    Table,
    Track,
    packed,
)
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.int8.plans import Hand, at, net
from tests.codegen.support import Native, agrees, uno
from tests.comparing import equal
from tests.strategies.chains import STRATEGIES, Chain, board, mnist
from tests.targets.cortex_m import board_named, built, needs_arm, outputs, simulated
from tests.tiers import quick


def core(name: str, streams: bool = False) -> Hardware:
    return replace(board(streams, "flash"), core=name, cpu="cortex-m4")


@pytest.mark.parametrize(
    ("name", "streams"),
    quick(2, [("host", True), ("cortex_m", False), ("host", False), ("cortex_m", True)], ci=0),
)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda s: s.name)
def test_nibbles_without_assembly(strategy: type, name: str, streams: bool, tmp_path: Path) -> None:
    graph, hardware = mnist().graph(), core(name, streams)
    plan = strategy("slots").plan(graph, hardware)
    source = generate(graph, plan, hardware, {})["model.c"]
    assert "__AVR__" not in source and "nn_canary" not in source
    assert agrees(Native(tmp_path, graph, plan, hardware), 4)


@needs_arm
@pytest.mark.parametrize("name", quick(1, ["nucleo_f446re", "nucleo_g0b1re"]))
def test_nibbles_on_a_simulated_board(name: str, tmp_path: Path) -> None:
    hardware = board_named(name, streams_input=True)
    graph = Chain((12, 12, 1), "uint8").average("p").conv("c", 3).maximum("m").dense("d", 2).graph()
    plan = STRATEGIES[-1]("slots").plan(graph, hardware)
    size = built(tmp_path, graph, hardware, plan)
    given = np.random.default_rng(0).integers(0, 256, (3, *graph.tensors["image"].shape))
    runs = simulated(tmp_path, graph, hardware, size, given)
    equal(outputs(graph, runs), graph.outputs(given))


def rows_as_they_come(ring: int, strides: tuple[int, ...] = ()) -> tuple[Graph, Plan]:
    """A 3x3 convolution over a ring of rows of the image: three before the first row of outputs,
    then one each; the last output row has no row below it."""
    n = net(8, 6, 3)
    name = n.conv(4)
    hand = Hand(n.graph())
    x = hand.put("image", 0, wrap=(ring, 0, 0), strides=strides)
    y = hand.put(name, 400)
    arriving = Buffer("arriving", "image", "stream", (8, 6, 3), 8, packed((8, 6, 3), 8))
    hand.buffers["arriving"] = arriving

    def row(lo: int | Lin, count: int = 1) -> Move:
        place = (lo, 0, 0), (count, 6, 3)
        return Move(Slice("arriving", *place), Slice(x.buffer, *place))

    def compute(lo: int | Lin) -> Compute:
        seen = Slice(
            x.buffer, (lo + -1 if isinstance(lo, int) else Lin(-1, lo.coef), 0, 0), (3, 6, 3)
        )
        return Compute(name, Slice(y.buffer, (lo, 0, 0), (1, 6, 4)), (seen, *hand.parameters(name)))

    steps: tuple[Step, ...] = (
        row(0),
        Loop("r", 7, (row(at("r", 1, 1)), compute(at("r", 1)))),
        compute(7),
    )
    memories = (Memory("sram", 1 << 12), Memory("flash", 1 << 12, "rom"))
    plan = Plan(
        hand.graph.name, "by hand", (*memories, Memory("stream", 144, "stream")),
        tuple(hand.buffers.values()), (Track("cpu", steps),), ("arriving", *hand.fixed), name,
    )  # fmt: skip
    return hand.graph, plan


@pytest.mark.parametrize(("ring", "strides"), [(4, ()), (4, (40, 6, 2)), (3, ())])
def test_rows_in_a_ring_while_they_arrive(
    ring: int, strides: tuple[int, ...], tmp_path: Path
) -> None:
    graph, plan = rows_as_they_come(ring, strides)
    verify(plan, graph)
    for name in ("host", "avr"):
        native = Native(tmp_path / name, graph, plan, replace(core(name, True), core=name))
        assert all(agrees(native, 4, chunk) for chunk in (1, 7, 18, 100))


def test_rows_anywhere_while_they_arrive(tmp_path: Path) -> None:
    """A table has no places that count with a loop: what arrives is unrolled."""
    chain = Chain((5, 4, 2)).conv("a", 3, 1).dense("d", 2)
    graph, hardware = chain.graph(), core("host", True)
    plan = Ordinary("slots").plan(graph, hardware)
    image = next(b for b in plan.buffers if b.tensor == "image" and b.memory == "sram")
    cells = np.random.default_rng(0).permutation(40) + 2000
    torn = replace(image, map=Table(tuple(cells.tolist())))
    two = tuple(torn if b is image else b for b in plan.buffers)
    changed = replace(plan, buffers=two)
    verify(changed, graph)
    assert agrees(Native(tmp_path, graph, changed, hardware), 4, 3)


def test_a_stream_that_a_kernel_reads_itself() -> None:
    graph, plan = rows_as_they_come(4)
    (track,) = plan.tracks
    last = track.steps[-1]
    assert isinstance(last, Compute)
    direct = replace(last, ins=(Slice("arriving", (6, 0, 0), (3, 6, 3)), *last.ins[1:]))
    changed = replace(plan, tracks=(replace(track, steps=(*track.steps[:-1], direct)),))
    with pytest.raises(ThimbleError, match="computes from SRAM, not arriving"):
        generate(graph, changed, uno(), {})
