"""Assembly for a core with two pipelines: the same results in fewer cycles of its model."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.cortex_m.woven import Instruction, in_order, woven
from pipeline.graph.graph import Graph
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.support import core
from tests.graphs import Net

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
    """Of each register what it is made of, as a tree: any two orders with equal trees compute the
    same."""
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


def network() -> Graph:
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
    graph, m7 = network(), core("cortex-m7")
    text = generate(graph, Ordinary().plan(graph, m7), m7, {})["model.c"]
    long = [run for run in runs(text) if len(run) > 80]
    assert len(long) > 2
    for run in long:
        products = sum(each.unit == "multiply" for each in run)
        assert cycles(run) <= 1.1 * max(products, len(run) / 2)


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m33"])
def test_others_keep_loads_together(cpu: str) -> None:
    """Their templates have that order, and nothing that the compiler does not count."""
    graph, single = network(), core(cpu)
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
