"""What a map says of buffers: each role has a colour and a reason to be there."""

from __future__ import annotations

from typing import get_args

import numpy as np

from pipeline.plan.buffers import PASSING, Buffer, Role
from pipeline.plan.vocabulary import packed
from pipeline.report.memory_map.picture import kind, why
from pipeline.report.palette import MEMORY
from tests.plan.fixtures import residual


def test_every_role_has_a_kind_and_a_reason() -> None:
    _, graph = residual(np.random.default_rng(0))
    place = packed((4,), 8)
    for role in get_args(Role):
        constant = role == "constant"
        for tensor in sorted(graph.constants) if constant else [graph.input, graph.output]:
            name = "" if role in PASSING else tensor
            buffer = Buffer("b", name, "sram", (4,), 8, place, role)
            if role == "accumulator" and tensor == graph.input:
                continue
            assert kind(buffer, graph) in MEMORY and len(why(buffer, graph)) > 10


def test_a_tensor_says_who_makes_it_and_who_needs_it() -> None:
    _, graph = residual(np.random.default_rng(0))
    place, (first, *_, last) = packed((4,), 8), graph.operators

    def said(tensor: str) -> str:
        return why(Buffer("b", tensor, "sram", (4,), 8, place), graph)

    assert said(graph.input).startswith("the network's input, needed by")
    assert said(graph.output) == f"made by {last.name}, the network's output"
    readers = [op.name for op in graph.operators if first.output in op.inputs]
    assert said(first.output) == f"made by {first.name}, needed by {', '.join(readers)}"
