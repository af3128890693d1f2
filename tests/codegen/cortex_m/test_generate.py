"""What is generated for which core, and where the fast kernels are not for a step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.errors import ThimbleError
from pipeline.graph.graph import Graph
from pipeline.kernels import Form, scratch_bytes
from pipeline.kernels.cortex_m.conv2d import pixels_together
from pipeline.plan.cost import cost
from pipeline.plan.vocabulary import Plan
from pipeline.strategies.ordinary import Ordinary
from tests.codegen.cortex_m.support import core, fast, twin
from tests.codegen.int8.support import apart, host
from tests.comparing import equal
from tests.graphs import Net


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


def test_without_room_for_scratch_the_kernels_are_portable(tmp_path: Path) -> None:
    graph = network()
    tight = core(sram_bytes=2 * 512 + 100)
    plan = Ordinary().plan(graph, tight)
    assert not any(buffer.role == "scratch" for buffer in plan.buffers)
    assert fast(twin(tmp_path, graph, plan), "conv2d") == 0


def changed(plan: Plan, **scratch: object) -> Plan:
    buffers = (replace(b, **scratch) if b.role == "scratch" else b for b in plan.buffers)  # type: ignore[arg-type]
    return replace(plan, buffers=tuple(buffers))


def test_scratch_too_small_is_refused() -> None:
    graph = network()
    small = changed(Ordinary().plan(graph, core()), shape=(64,))
    with pytest.raises(ThimbleError, match="needs 576 B of scratch at a word, the plan has 64 B"):
        generate(graph, small, core(), {})


def test_a_plan_without_scratch_runs(tmp_path: Path) -> None:
    graph = network()
    plan = apart(graph)
    given = np.random.default_rng(0).integers(-128, 128, (3, 8, 8, 8))
    native = twin(tmp_path, graph, plan)
    equal(native(given), graph.outputs(given))
    assert native.files["model.c"] == generate(graph, plan, host(), {})["model.c"]


@pytest.mark.parametrize(("pixels", "together"), [(1, 1), (2, 2), (9, 3), (125, 4), (1024, 4)])
def test_pixels_that_are_computed_together(pixels: int, together: int) -> None:
    assert pixels_together(pixels) == together
