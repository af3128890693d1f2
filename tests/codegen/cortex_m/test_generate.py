"""Code that is generated for a core where the fast kernels are not for a step; and assembly for a
core with two pipelines: the same results in fewer cycles of its model."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.cortex_m.operators.rounded import MOST_AT_ONCE
from pipeline.codegen.cortex_m.woven import RUN, Instruction, in_order, woven
from pipeline.graph.graph import Graph
from pipeline.kernels import Form, scratch_bytes
from pipeline.kernels.cortex_m.accumulate import MOST_WINDOW
from pipeline.kernels.cortex_m.conv2d import pixels_together
from pipeline.kernels.cortex_m.single import MOST_COLUMNS, WIDEST
from pipeline.kernels.fast import unrolled
from pipeline.plan.cost import cost
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.support import by_rows, core, kernels
from tests.codegen.int8.support import apart, host
from tests.graphs import Chained, Net
from tests.kernels.layers import Layer
from tests.targets.cortex_m import board_named, built, needs_arm
from tests.tiers import quick


def network() -> Graph:
    return Chained(Net((8, 8, 8), name="net")).conv(8, (3, 3)).depthwise((3, 3)).graph()


def test_the_core_decides() -> None:
    graph = network()
    for cpu, has_dsp in (("cortex-m0plus", False), ("cortex-m4", True), ("cortex-m33", True)):
        hardware = core(cpu)
        plan = Ordinary().plan(graph, hardware)
        files = generate(graph, plan, hardware, {})
        assert ("nn_dsp.h" in files) == has_dsp
        assert ("NN_PAIR(" in files["model.c"]) == has_dsp
        assert ("nn_thumb.h" in files) != has_dsp
        assert any(buffer.role == "scratch" for buffer in plan.buffers)


def test_scratch_is_planned_and_counted() -> None:
    graph, hardware = network(), core()
    portable = replace(hardware, kernels="portable")
    plan, plain = Ordinary().plan(graph, hardware), Ordinary().plan(graph, portable)
    by_name = {op.name: scratch_bytes(Form.whole(op, graph), hardware) for op in graph.operators}
    found = {
        b.name.removesuffix(".scratch"): b.shape[0] for b in plan.buffers if b.role == "scratch"
    }
    assert found == by_name == {"conv0": 4 * 72 * 2, "conv1": 3 * 4 * 10 * 2}
    more = cost(plan, graph, hardware).arena_bytes - cost(plain, graph, hardware).arena_bytes
    assert more == max(by_name.values())
    assert cost(plan, graph, hardware).pmu_bytes == cost(plain, graph, hardware).pmu_bytes


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m0plus"])
def test_without_room_for_scratch_the_kernels_are_portable(cpu: str) -> None:
    graph, tight = network(), core(cpu, 2 * 512 + 100)
    plan = Ordinary().plan(graph, tight)
    assert not any(buffer.role == "scratch" for buffer in plan.buffers)
    assert all(name.startswith("int8.") for name in kernels(plan).values())


def test_a_plan_without_scratch_is_as_everywhere() -> None:
    graph = network()
    files = (generate(graph, apart(graph), hardware, {}) for hardware in (core(), host()))
    assert len({each["model.c"] for each in files}) == 1


def test_pixels_that_are_computed_together() -> None:
    assert list(map(pixels_together, (1, 2, 9, 125, 1024))) == [1, 2, 3, 4, 4]


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
    name = layer.step(plan).op
    size = built(tmp_path, graph, board, plan)
    found = sum(n for function, n in size.functions.items() if f"_{name}" in function)
    assert found > (REACH if layer == LONGEST[0] else 500)


@needs_arm
def test_constants_of_rows_are_in_reach(tmp_path: Path) -> None:
    """Those that the compiler would load into floating-point registers are too far away."""
    net = Net((13, 10, 8), np.random.default_rng(1), name="reach")
    given = net.mean((1, 1), stride=(1, 1))
    made = net.conv(8, (3, 3), padding=(4, 4, 4, 4), dilation=(4, 4))
    net.mean((1, 1), stride=(1, 1))
    graph, hardware = net.graph(), board_named("nucleo_f446re")
    plan = by_rows(graph, hardware, {given: 4, made: 4})
    assert kernels(plan)[graph.operators[1].name] == "cortex_m.row_conv2d"
    built(tmp_path, graph, hardware, plan)


@pytest.mark.parametrize("most", [MOST_AT_ONCE, 4, 8])
def test_what_is_repeated_has_a_bound(most: int) -> None:
    """Whatever the number of words: what a round takes and what is left after the last."""
    for words in range(1, 500):
        each = unrolled(words, most)
        left = words % each if words > each else 0
        assert 1 <= each <= words
        assert each + left <= most


def some(rng: np.random.Generator, count: int) -> list[str]:
    """Draw macros of few variables, so that most depend on others."""
    found = list[str]()
    for _ in range(count):
        a, b, c = (f"r{rng.integers(6)}" for _ in range(3))
        base = f"p{rng.integers(2)}"
        texts = (
            f"NN_LOAD({a}, {base}, 4);", f"NN_NEXT({a}, {base}, 4);", f"NN_FETCH({a}, end);",
            f"NN_EVEN({a}, {b});", f"NN_ODD({a}, {a});", f"NN_BOTH({a}, {b}, {c});",
            f"NN_PAIR({a}, {b}, {c});", f"NN_LOW_HIGH({a}, {b}, {c});",
        )  # fmt: skip
        found.append(f"    {texts[rng.integers(len(texts))]}\n")
    return found


def results(code: list[str]) -> dict[str, object]:
    """Return what each variable is made of: orders with equal trees compute the same."""
    known: dict[str, object] = {}
    for text in code:
        name, to, *others = re.findall(r"\w+", text)
        made = name, *(hash(known.get(each, each)) for each in (to, *others))
        known[to] = made if name in ("NN_PAIR", "NN_LOW_HIGH") else (made[0], *made[2:])
        if name == "NN_NEXT":
            known[others[0]] = made[2], "next"
    return known


def cycles(code: list[Instruction]) -> int:
    """As the model of the core counts them."""
    total, joined = 0, True
    for before, each in zip([None, *code], code, strict=False):
        joined = before is not None and not joined and each.joins(before)
        total += 0 if joined else 1 + (before is not None and each.late(before))
    return total


def test_any_order_gives_the_same_results() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        given = some(rng, int(rng.integers(1, 60)))
        found = in_order(given)
        assert sorted(found) == sorted(given), seed
        assert results(found) == results(given), seed


def all_layers() -> Graph:
    rng = np.random.default_rng(0)
    net = Chained(Net((12, 12, 16), rng, name="woven"))
    return net.conv(32, (1, 1)).depthwise((3, 3)).conv(16, (3, 3)).dense(20).graph()


def test_long_runs_take_little_more_than_they_have_to() -> None:
    """A cycle a multiplication, and two instructions a cycle, are the least."""
    graph, m7 = all_layers(), core("cortex-m7")
    text = generate(graph, Ordinary().plan(graph, m7), m7, {})["model.c"]
    runs = (run[0].splitlines() for run in RUN.finditer(text))
    long = [list(map(Instruction.of, run)) for run in runs if len(run) > 80]
    assert len(long) > 2
    for run in long:
        products = sum(each.unit == "multiply" for each in run)
        assert cycles(run) <= 1.1 * max(products, len(run) / 2)


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m33"])
def test_others_keep_loads_together(cpu: str) -> None:
    """Their templates have that order, and nothing that the compiler does not count."""
    graph, single = all_layers(), core(cpu)
    text = generate(graph, Ordinary().plan(graph, single), single, {})["model.c"]
    assert woven(text) != text and ".rept" not in text


def test_what_is_not_known_stays_where_it_is() -> None:
    given = "    NN_LOAD(x, p, 4);\n    NN_STORE(x, q, 0);\n    NN_LOAD(y, p, 0);\n    w += 4;\n"
    assert woven(given) == given
