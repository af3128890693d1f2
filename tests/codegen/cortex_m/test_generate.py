"""Code that is generated for a core where the fast kernels are not for a step; and assembly for a
core with two pipelines: the same results in fewer cycles of its model."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.cortex_m.operators.rounded import MOST_AT_ONCE
from pipeline.codegen.cortex_m.woven import Instruction, in_order, woven
from pipeline.graph.graph import Graph
from pipeline.kernels import Form, scratch_bytes
from pipeline.kernels.cortex_m.accumulate import MOST_WINDOW
from pipeline.kernels.cortex_m.conv2d import pixels_together
from pipeline.kernels.cortex_m.inner import unrolled
from pipeline.kernels.cortex_m.single import MOST_COLUMNS, WIDEST
from pipeline.plan.cost import cost
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.support import by_rows, core, kernels
from tests.codegen.int8.support import apart, host
from tests.graphs import Net
from tests.kernels.layers import Layer
from tests.targets.cortex_m import board_named, built, needs_arm
from tests.tiers import quick


def network() -> Graph:
    net = Net((8, 8, 8), name="net")
    net.conv(8, (3, 3))
    net.depthwise((3, 3))
    return net.graph()


def test_the_core_decides() -> None:
    graph = network()
    for cpu, has_dsp in (("cortex-m0plus", False), ("cortex-m4", True), ("cortex-m33", True)):
        hardware = core(cpu)
        plan = Ordinary().plan(graph, hardware)
        files = generate(graph, plan, hardware, {})
        assert ("nn_dsp.h" in files) == has_dsp
        assert ("smlad" in files["model.c"]) == has_dsp
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


REGISTERS = ("a", "b", "c", "d", "e", "p", "q")


def some(rng: np.random.Generator, count: int) -> list[Instruction]:
    """Loads, preparations and multiplications of a few registers."""

    def any_() -> str:
        return f"%[{REGISTERS[rng.integers(5)]}]"

    found = []
    for _ in range(count):
        base = f"%[{'pq'[rng.integers(2)]}]"
        texts = (
            f"ldr {any_()}, [{base}], #4",
            f"ldr {any_()}, [{base}, #{4 * rng.integers(9)}]",
            f"ldr {any_()}, [{base}, #4]!",
            f"sxtb16 {any_()}, {any_()}, ror #8",
            f"pkhbt {any_()}, {any_()}, {any_()}, lsl #16",
            f"add {base}, {base}, #4",
            f"smlad {any_()}, {any_()}, {any_()}, {any_()}",
            f"smlabt {any_()}, {any_()}, {any_()}, {any_()}",
        )
        each = Instruction.of(texts[rng.integers(len(texts))])
        assert each is not None
        found.append(each)
    return found


def results(code: list[Instruction]) -> dict[str, object]:
    """Return for each register what it is made of, as a tree: any two orders with equal trees
    compute the same."""
    known: dict[str, object] = {}
    for text in (each.text for each in code):
        to, *others = re.findall(r"%\[\w+\]", text)
        shape = re.sub(r"%\[\w+\]", "%", text)
        made = shape, *(hash(known.get(name, name)) for name in others)
        known[to] = made, "result"
        if shape.endswith(("], #4", "]!")):
            known[others[0]] = made, "address"
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
        assert sorted(each.text for each in found) == sorted(each.text for each in given), seed
        assert results(found) == results(given), seed


def all_layers() -> Graph:
    rng = np.random.default_rng(0)
    net = Net((12, 12, 16), rng, name="woven")
    net.conv(32, (1, 1))
    net.depthwise((3, 3))
    net.conv(16, (3, 3))
    net.dense(20)
    return net.graph()


def runs(text: str) -> list[list[Instruction]]:
    """Instructions that follow each other in inline assembly."""
    found = list[list[Instruction]]([[]])
    for line in text.split("\n"):
        inside = re.match(r'^ +"(.*)\\n"$', line)
        each = Instruction.of(inside[1]) if inside else None
        if each:
            found[-1].append(each)
        elif found[-1]:
            found.append([])
    return [run for run in found if len(run) > 1]


def test_long_runs_take_little_more_than_they_have_to() -> None:
    """A cycle a multiplication, and two instructions a cycle, are the least."""
    graph, m7 = all_layers(), core("cortex-m7")
    text = generate(graph, Ordinary().plan(graph, m7), m7, {})["model.c"]
    long = [run for run in runs(text) if len(run) > 80]
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
    lines = ["int32_t before(void);"]
    lines += (
        f'    "{text}\\n"'
        for text in ("1:", "ldr %[x], [%[p]], #4", "smlad %[b], %[x], %[w], %[b]",
                     "str %[b], [%[q]], #4", "cmp %[p], %[end]", "bne 1b")
    )  # fmt: skip
    assert woven("\n".join(lines)).split("\n") == lines
    for text in ("smlal r0, r1, r2, r3", "strb r0, [r1]", "adds r0, r1, r2"):
        assert Instruction.of(text) is None


def test_addresses_that_are_written_back_and_others() -> None:
    for to, base in product(("r0", "%0", "%[to]"), ("r1", "%1", "%[from]")):
        for form, back in (
            ("{}, [{}], #4", True),
            ("{}, [{}], r2", True),
            ("{}, [{}, #4]!", True),
            ("{}, [{}]", False),
            ("{}, [{}, #4]", False),
            ("{}, [{}, r2]", False),
        ):
            found = Instruction.of("ldr " + form.format(to, base))
            assert found is not None and found.writes == ({to, base} if back else {to}), form
