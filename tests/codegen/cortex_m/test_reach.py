"""The longest code in assembly. Constants that gcc puts behind a function may be out of a load's
reach, and so may labels of a branch: then the assembler refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.codegen.cortex_m.operators.rounded import MOST_AT_ONCE
from pipeline.kernels.cortex_m.accumulate import MOST_WINDOW
from pipeline.kernels.cortex_m.inner import unrolled
from pipeline.kernels.cortex_m.single import MOST_COLUMNS, WIDEST
from tests.kernels.layers import Layer, step_of
from tests.targets.cortex_m import board_named, built, needs_arm
from tests.tiers import quick

REACH = 4095
"""Bytes from the next instruction that a load of a constant reaches."""

LONGEST = [
    Layer("cortex_m.strips", (8, MOST_COLUMNS, 64), 4, window=(3, WIDEST), at_once=1),
    Layer("cortex_m.accumulate", (8, 16, 8), 61, window=(1, MOST_WINDOW), adding=1, bits=16),
    Layer(
        "cortex_m.strips", (8, MOST_COLUMNS, 64), 4, window=(3, WIDEST), at_once=1, dilation=3,
        twice=True,
    ),
    Layer("cortex_m.accumulate", (8, 16, 8), 64, window=(1, MOST_WINDOW), adding=1, bits=8),
    Layer("cortex_m.accumulate", (8, 8, 16), 63, window=(3, 3), adding=4),
    Layer("cortex_m.dense", (637,), 128, kind="dense"),
    Layer("cortex_m.dense", (637,), 7, kind="dense"),
    Layer("cortex_m.conv2d", (8, 8, 63), 31, window=(7, 7)),
]  # fmt: skip
"""The first is longer than a load reaches: its constants must be read before."""


@needs_arm
@pytest.mark.parametrize("layer", quick(1, LONGEST, ci=2), ids=str)
def test_constants_are_in_reach(tmp_path: Path, layer: Layer) -> None:
    board, graph = board_named("nucleo_l4r5zi"), layer.graph()
    plan = layer.plan(graph, board)
    name = step_of(plan, layer.kernel).op
    size = built(tmp_path, graph, board, plan)
    found = sum(n for function, n in size.functions.items() if f"_{name}" in function)
    assert found > (REACH if layer == LONGEST[0] else 500)


@pytest.mark.parametrize("most", [MOST_AT_ONCE, 4, 8])
def test_what_is_repeated_has_a_bound(most: int) -> None:
    """Whatever the number of words: what a round takes and what is left after the last."""
    for words in range(1, 500):
        each = unrolled(words, most)
        left = words % each if words > each else 0
        assert 1 <= each <= words
        assert each + left <= most
