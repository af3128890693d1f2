"""8-bit images that stream in: stored, or pooled on the way, on every core."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.bound import bound
from pipeline.graph.graph import Graph
from pipeline.graph.operators.pool2d import AveragePool2d, MaxPool2d
from pipeline.graph.requant import FixedPoint, Mean
from pipeline.plan.vocabulary import Lin, Loop, Move, Slice, Wait
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.partial import Partial
from tests.codegen.support import Native, agrees
from tests.graphs import Net
from tests.strategies.chains import Chain, board
from tests.tiers import quick


def pooled(kind: str) -> Graph:
    """An image with a zero point, pooled by 2x3, then a convolution by shifts."""
    chain = Chain((6, 9, 2), "int8")
    chain.tensors["image"] = replace(chain.tensors["image"], zero_point=-7)
    target = {"maximum": -7, "mean": -7, "scaled": 5}[kind]
    sizes = {"kernel": (2, 3), "stride": (2, 3)}
    if kind == "maximum":
        chain.add(MaxPool2d("p", ("image",), "p", clip=(-20, 90), **sizes), "int8")  # type: ignore[arg-type]
    else:
        requant = Mean() if kind == "mean" else FixedPoint.of([0.21])
        op = AveragePool2d("p", ("image",), "p", requant=requant, **sizes)  # type: ignore[arg-type]
        chain.add(op, "int8")
    chain.tensors["p"] = replace(chain.tensors["p"], zero_point=target)
    return chain.conv("c", 3, 1, dtype="int8").graph()


@pytest.mark.parametrize(
    ("kind", "core"), quick(1, [("scaled", "avr"), ("maximum", "host"), ("mean", "avr")])
)
def test_bytes_pooled_on_the_way(kind: str, core: str, tmp_path: Path) -> None:
    graph, hardware = pooled(kind), replace(board(True, "flash"), core=core)
    plan = Ordinary("slots").plan(graph, hardware)
    assert "nn_fed_rows" in generate(graph, plan, hardware, {})["model.c"]
    assert agrees(Native(tmp_path, graph, plan, hardware), 5, 11)


@pytest.mark.parametrize(
    ("strategy", "core"),
    quick(1, [(Partial(), "avr"), (Ordinary(), "cortex_m"), (Partial(), "host")]),
)
def test_bytes_that_are_stored(strategy: Ordinary | Partial, core: str, tmp_path: Path) -> None:
    net = Net((8, 7, 3), np.random.default_rng(0))
    net.conv(4)
    net.depthwise()
    net.dense(3)
    graph = net.graph()
    hardware = replace(board(True, "flash"), core=core, cpu="cortex-m4")
    plan = strategy.plan(graph, hardware)
    files = generate(graph, plan, hardware, {})
    assert "#define NN_INPUT_FILLABLE 0" in files["model.h"]
    assert agrees(Native(tmp_path, graph, plan, hardware), 4, 5)


def test_steps_of_one_round() -> None:
    """Variables of loops further in stay variables."""
    piece = Slice("a", (Lin(1, (("i", 2), ("j", 3))), 0), (1, 4))
    move = Move(piece, replace(piece, copy=Lin(0, (("i", 1),))))
    inner = bound(Loop("j", 5, (move, Wait("c", Lin(4, (("i", 10),))))), {"i": 7})
    assert isinstance(inner, Loop)
    moved, wait = inner.body
    assert isinstance(moved, Move) and moved.src.lo == (Lin(15, (("j", 3),)), 0)
    assert moved.dst.copy == 7 and wait == Wait("c", 74)
    last = bound(moved, {"j": 2})
    assert isinstance(last, Move) and last.src.lo == (21, 0)
