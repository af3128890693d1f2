"""MLPerf Tiny's networks row by row, 1,000 inputs each: as C on the computer they answer, byte by
byte, what tflite-micro does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.codegen import generate
from pipeline.strategies.joint import Joint
from tests.codegen.int8.support import Native
from tests.comparing import equal
from tests.importers.test_tflite import MLPERF_TINY
from tests.importers.tflite_reference import frames, reference
from tests.public_models import MODELS, needs_models
from tests.strategies.bench_joint import network
from tests.targets.cortex_m import board_named

COUNT = 1_000


@pytest.mark.slow
@needs_models
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_a_thousand_inputs(name: str, tmp_path: Path) -> None:
    """Kernels for a Cortex-M4, by their twins in C: the input held, streamed, and the fastest plan
    in half as much again as the least memory."""
    graph, board = network(name), board_named("nucleo_l4r5zi")
    given = frames(graph, COUNT)
    wanted = reference((MODELS / f"{name}.tflite").read_bytes(), given)
    fast = Joint(objective="latency", arena_limit_times_least=1.5)
    for number, (strategy, streams) in enumerate(
        ((Joint(), False), (Joint(), True), (fast, False))
    ):
        hardware = replace(board, streams_input=streams)
        plan = strategy.plan(graph, hardware)
        files = generate(graph, plan, hardware, {})
        native = Native(tmp_path / str(number), graph, plan, files=files, sanitize=False)
        equal(native(given).reshape(COUNT, -1), wanted, strategy=strategy, streams=streams)
