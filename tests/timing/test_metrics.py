"""What a plan with a card says reaches a run's result, which JSON, MLflow and the report read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import verdict
from pipeline.artifacts import write_json
from pipeline.hardware import Power
from pipeline.runner.results import known
from pipeline.strategies.swap import Swap
from pipeline.words import METRICS
from tests.strategies.swap.nets import random_chain
from tests.timing.toys import slow

TIMED = (
    "compute_us",
    "io_us",
    "overhead_pct",
    "throughput_fps",
    "throughput_loss_pct",
    "card_read_bytes",
    "card_write_bytes",
    "wear",
    "wear_years_first_failure",
    "wear_years_half",
    "energy_uj",
)


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("scheduler", ["best", "swapnn"])
def test_every_timed_metric_is_in_the_result(tmp_path: Path, scheduler: str, frames: int) -> None:
    power = Power(supply_volt=3.3, active_ma=50.0, idle_ma=5.0, source="made up")
    board = replace(slow(first_failure_cycles=1000), sram_bytes=1 << 15, power=power)
    graph = random_chain(3)
    strategy = Swap(scheduler=scheduler, frames=frames, buffer_bytes=2048)  # type: ignore[arg-type]
    report = verdict.check(strategy.plan(graph, board), graph, board)
    write_json(tmp_path / "schedule.json", report)
    groups = ("model", "data", "strategy", "target")
    limits = {"name": "x", "sram_bytes": board.sram_bytes, "flash_bytes": board.flash_bytes}
    result = known(tmp_path, {"hardware": limits, **{group: {"name": "x"} for group in groups}})
    assert result["status"] == "ok"
    for name in TIMED:
        assert name in METRICS and isinstance(result[name], float) and result[name] > 0, name
    stay = {"maps_stay_bytes", "weights_stay_bytes"}
    assert stay <= set(METRICS) and (stay <= set(result)) == (scheduler == "best")
    assert "latency_us" not in result  # which is a run's
