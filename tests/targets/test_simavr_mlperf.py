"""MLPerf Tiny's keyword network on a simulated Arduino Mega as its YAML has it, byte by byte what
tflite-micro answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.plan.cost import cost
from pipeline.strategies.auto import Auto
from pipeline.targets import builds, simavr
from pipeline.targets.harness import harness_sources
from tests.codegen.support import write
from tests.importers.test_tflite import MODELS
from tests.importers.tflite_reference import frames, reference
from tests.targets.conftest import load_hardware, needs_avr
from tests.targets.test_qemu_mlperf import network

COUNT = 100
PLAN_BYTES = (3_400, 4_200)
"""What activations in SRAM may take: the joint schedule with the input held."""

pytestmark = [
    needs_avr,
    pytest.mark.skipif(not MODELS.is_dir(), reason="MLPerf Tiny's models are not here"),
]


@pytest.mark.slow
def test_a_hundred_inputs_on_a_mega(tmp_path: Path) -> None:
    """The extremes of all inputs are among the frames."""
    graph, hardware = network("kws_ref_model"), load_hardware("arduino_mega")
    plan = Auto().plan(graph, hardware)
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
    assert np.array_equal(found, reference((MODELS / "kws_ref_model.tflite").read_bytes(), given))
    assert np.array_equal(found, graph.outputs(given).reshape(COUNT, -1))
    assert size.ram_objects["nn_arena"] == costs.arena_bytes
    assert (runs.stack_bytes or 0) <= size.stack_bound_bytes
