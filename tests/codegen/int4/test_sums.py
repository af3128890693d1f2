"""Sums of 4 bits: what every pair gives, and residual units that run as the graph says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.int4.operators.sums import table
from pipeline.codegen.int4.stretches import stretches
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.graph.operators.add import Add
from pipeline.graph.requant import FixedPoint
from pipeline.graph.tensor import DType, Tensor
from pipeline.kernels import Form, choose
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from pipeline.strategies.base import Strategy
from pipeline.strategies.herringbone import Herringbone
from pipeline.strategies.joint import Joint
from pipeline.strategies.ordinary import Ordinary
from pipeline.strategies.replace import Replace
from pipeline.strategies.sliding import Sliding
from tests.codegen.int4.test_avr import on_chip, uses_assembly
from tests.codegen.int8.support import Native, frames, host
from tests.codegen.support import uno
from tests.comparing import equal
from tests.strategies.chains import Chain
from tests.targets.conftest import load_hardware, needs_avr

ONCE = FixedPoint.of([2.0**-20])
"""Of sums that are shifted left by 20."""


def plus(chain: Chain, left: str, right: str, scales: tuple[float, float] = (0.5, 0.75)) -> Chain:
    requants = (FixedPoint.of([scales[0]]), FixedPoint.of([scales[1]]))
    name = f"sum{len(chain.operators)}"
    op = Add(
        name, tuple(dict.fromkeys((left, right))), name, operands=(left, right),
        operand_requants=requants, requant=ONCE,
    )  # fmt: skip
    return chain.add(op, "uint4")


def residual() -> Graph:
    """A unit of two 3x3 convolutions that keep the image's size, its input added, and a dense end.

    An odd number of channels: pixels begin in the middle of bytes.
    """
    chain = Chain((10, 7, 1), "uint8").average("pooled", 4, kernel=(1, 1), stride=(1, 1))
    chain.conv("first", 5)
    chain.conv("a", 5, padding=(1, 1, 1, 1)).conv("b", 5, padding=(1, 1, 1, 1))
    return plus(chain, "first", "b").dense("logits", 3).graph()


def cropped(channels: int = 5, wide: int = 5) -> Graph:
    """The same without padding: the middle of its input is added; ``wide`` channels behind it."""
    chain = Chain((12, 9, 1), "uint8").average("pooled", 4, kernel=(1, 1), stride=(1, 1))
    chain.conv("first", channels).middle("middle", 2)
    chain.last = "first"
    chain.conv("a", channels).conv("b", channels)
    chain.tensors["b"] = replace(chain.tensors["b"], zero_point=8)
    return plus(chain, "middle", "b").conv("wide", wide, 2).dense("logits", 3).graph()


@pytest.mark.parametrize("dtype", ["uint4", "int4"])
def test_the_table_has_every_pair(dtype: str) -> None:
    kind = DType.parse(dtype)
    tensors = {
        "a": Tensor("a", (16, 16, 1), kind, (1.0,), 0),
        "b": Tensor("b", (16, 16, 1), kind, (1.0,), 3),
        "c": Tensor("c", (16, 16, 1), kind, (1.0,), -1),
    }
    scales = (FixedPoint.of([0.5]), FixedPoint.of([0.7]))
    op = Add("c", ("a", "b"), "c", operands=("a", "b"), operand_requants=scales, requant=ONCE)
    found = table(op, tensors)
    nibbles = [found[n // 2] >> 4 * (n % 2) & 15 for n in range(256)]
    for a, b in product(range(kind.minimum, kind.maximum + 1), repeat=2):
        given = zip(scales, (a, b - 3), strict=True)
        parts = [s.apply(np.array([x << 20])).item() for s, x in given]
        wanted = ONCE.apply(np.array([sum(parts)])).item() - 1
        wanted = min(max(wanted, kind.minimum), kind.maximum)
        assert nibbles[(a & 15) * 16 + (b & 15)] == wanted & 15


STRATEGIES = [Ordinary(), Joint(), Replace(), Herringbone()]


@pytest.mark.parametrize(
    ("make", "strategy"),
    [*((residual, each) for each in (Ordinary(), Sliding())), *((cropped, s) for s in STRATEGIES)],
    ids=lambda each: each.__name__ if callable(each) else each.name,
)
def test_a_residual_unit_natively(
    make: Callable[[], Graph], strategy: Strategy, tmp_path: Path
) -> None:
    graph, board = make(), host()
    plan = strategy.plan(graph, board)
    verify(plan, graph)
    given = frames(graph)
    wanted = graph.outputs(given)
    equal(interpret(plan, graph, given[2]).output, wanted[2])
    native = Native(tmp_path, graph, plan, files=generate(graph, plan, board, {}))
    equal(native(given), wanted)


@needs_avr
def test_a_residual_unit_on_the_chip(tmp_path: Path) -> None:
    """In assembly: what has a zero point, and a convolution of more channels than can be computed
    at once where deep pixels are torn from one another."""
    graph, board = cropped(16, 20), load_hardware(weights_in="flash")
    on_chip(tmp_path, graph, Replace().plan(graph, board), board)
    for name in ("first", "a", "b", "wide"):
        assert uses_assembly(tmp_path, name), name


def test_what_would_be_overwritten_is_refused() -> None:
    cells = [np.array([[4, 5, 6], [0, 1, 2], [5, 6, 7]])]
    with pytest.raises(ThimbleError, match="before it reads the next"):
        stretches("sum", cells)
    assert stretches("sum", [cells[0][:2], cells[0][:2] + 3]) == [(4, 0, 6)]
    assert stretches("sum", [cells[0][:2], cells[0][:2] + 4]) == [(4, 0, 3), (8, 4, 3)]


def test_a_tensor_and_itself() -> None:
    chain = Chain((4, 4, 3))
    op = plus(chain.conv("a", 3, 1), "a", "a").operators[-1]
    assert isinstance(op, Add) and op.inputs == ("a",)
    found = table(op, chain.tensors)
    assert [found[n // 2] >> 4 * (n % 2) & 15 for n in (0, 0x22, 0x44, 0xFF)] == [0, 3, 5, 15]


def test_what_is_refused() -> None:
    chain = Chain((4, 4, 3)).conv("a", 3, 1).conv("b", 3, 1, dtype="uint8")
    graph = plus(chain, "a", "b").graph()
    with pytest.raises(ThimbleError, match=r"two activations of 4 bits and of one shape"):
        choose(Form.whole(graph.operators[-1], graph), uno("flash"))
