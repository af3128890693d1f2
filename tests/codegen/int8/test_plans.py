"""Plans written by hand, proved, interpreted, generated and run: all equal to the graph."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.plan.interpret import interpret
from pipeline.plan.verify import verify
from tests.codegen.int8.plans import PLANS
from tests.codegen.int8.support import Native, frames, host
from tests.comparing import equal
from tests.plan.fixtures import channel_partial


@pytest.mark.parametrize("name", PLANS)
def test_c_does_what_the_plan_says(name: str, tmp_path: Path) -> None:
    graph, plan = PLANS[name]()
    verify(plan, graph)
    given = frames(graph)
    expected = graph.outputs(given)
    for frame, outputs in zip(given, expected, strict=True):
        equal(interpret(plan, graph, frame).output, outputs)
    equal(Native(tmp_path, graph, plan)(given), expected)


def test_the_vocabularys_own_channel_loop(tmp_path: Path) -> None:
    plan, graph = channel_partial(np.random.default_rng(0))
    given = frames(graph)
    equal(Native(tmp_path, graph, plan)(given), graph.outputs(given))


def source(name: str) -> str:
    graph, plan = PLANS[name]()
    return generate(graph, plan, host(), {})["model.c"]


def invoke(name: str) -> str:
    return source(name).partition("nn_status_t nn_invoke(void) {")[2]


def test_loops_stay_loops() -> None:
    text = invoke("channel loop")
    assert "for (int32_t k = 0; k < 3; k++) {" in text
    assert text.count("nn_") < 30
    assert invoke("nested loops").count("for (") == 3


def test_what_may_be_empty_is_asked_about() -> None:
    whether_fed = 1
    assert invoke("empty tiles").count("if (") == 1 + whether_fed
    assert invoke("nested loops").count("if (") == whether_fed


def test_what_is_in_place_costs_nothing() -> None:
    text = invoke("reshaped")
    assert text.count("mem") == 1  # one reshape lies where its input is
    assert "concat" not in re.sub(r"/\*.*?\*/", "", invoke("concat in place"))


def test_overlapping_pointers_are_not_declared_apart() -> None:
    text = source("in place")
    assert "restrict" not in text
    assert "restrict" in source("row tiles")


def test_tiles_share_one_function() -> None:
    """Steps that differ in addresses and ranges only do not multiply the code."""
    text = source("row ring")
    assert len(re.findall(r"^static NN_KERNEL void ", text, re.MULTILINE)) == 3
