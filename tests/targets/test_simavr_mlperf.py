"""MLPerf Tiny's keyword network on a simulated Arduino Mega as its YAML has it, byte by byte what
tflite-micro answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.graph.graph import Graph
from pipeline.graph.operator import Operator
from pipeline.graph.operators.conv2d import Conv2d
from pipeline.plan.cost import cost
from pipeline.plan.fit import CHOSEN
from pipeline.strategies.auto import Auto
from pipeline.targets import builds, simavr
from pipeline.targets.harness import harness_sources
from pipeline.targets.layers import of_functions
from tests.codegen.support import write
from tests.comparing import equal
from tests.importers.tflite_reference import frames, reference
from tests.public_models import MODELS, needs_models
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.test_qemu_mlperf import network

COUNT = 100
PLAN_BYTES = (3_400, 4_200)
"""What activations in SRAM may take: the joint schedule with the input held."""
POINTWISE_CYCLES_A_MAC = 12

pytestmark = [
    needs_avr,
    needs_models,
]


def one_by_one(op: Operator, graph: Graph) -> bool:
    return isinstance(op, Conv2d) and graph.tensors[op.parameters[0]].shape[1:3] == (1, 1)


@pytest.mark.slow
def test_a_hundred_inputs_on_a_mega(tmp_path: Path) -> None:
    """The extremes of all inputs are among the frames."""
    graph, hardware = network("kws_ref_model"), load_hardware("arduino_mega")
    plan = Auto().plan(graph, hardware)
    assert dict(plan.notes)[CHOSEN].startswith("joint")
    costs = cost(plan, graph, hardware)
    assert PLAN_BYTES[0] <= costs.arena_bytes <= PLAN_BYTES[1]
    write(tmp_path, {**generate(graph, plan, hardware, {}), **harness_sources(hardware)})
    size = builds.build(tmp_path, tmp_path / "build", hardware)
    assert size.status == "ok" and size.sram_bytes <= hardware.sram_bytes, size.where
    given = frames(graph, COUNT)
    runs = simavr.run(
        tmp_path / "build", vars(size), hardware, given.astype(np.int8).view(np.uint8)
    )
    found = runs.outputs.view(np.int8).astype(np.int64).reshape(COUNT, -1)
    equal(found, reference((MODELS / "kws_ref_model.tflite").read_bytes(), given))
    equal(found, graph.outputs(given).reshape(COUNT, -1))
    assert size.ram_objects["nn_arena"] == costs.arena_bytes
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes
    names = [op.name for op in graph.operators]
    functions = dict(zip(runs.functions, runs.function_cycles[0].tolist(), strict=True))
    cycles = dict(of_functions(functions, int(runs.compute_cycles[0]), names))
    pointwise = [op for op in graph.operators if one_by_one(op, graph)]
    assert len(pointwise) == 4
    for op in pointwise:
        assert cycles[op.name] <= POINTWISE_CYCLES_A_MAC * op.macs(graph.tensors), op.name
