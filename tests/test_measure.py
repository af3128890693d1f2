"""Metrics count what their names say; on hand-made outputs whose answers are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.measure import metrics, timing
from pipeline.metrics import METRICS
from tests.strategies.chains import board, mnist

GRAPH = mnist().graph()
BOARD = replace(board(), clock_hz=16_000_000)
SCHEDULE = {
    "pmu_bytes": 430.5, "arena_bytes": 431, "weight_bytes": 1512.5, "macs": 9, "macs_executed": 10,
}  # fmt: skip
SIZE = {
    "status": "ok", "flash_bytes": 9000, "flash_limit_bytes": 32256, "sram_bytes": 2010,
    "sram_limit_bytes": 2048, "stack_bound_bytes": 60,
}  # fmt: skip
DEVICE = {
    "stack_bytes": 44,
    "sram_bytes": 1994,
    "compute_cycles": {"min": 900_000, "median": 960_000, "max": 970_000},
    "latency_cycles": {"min": 400_000, "median": 480_000, "max": 480_000},
}


def measured(device: dict[str, Any], wrong_device: int = 0, wrong_host: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 28, 28, 1)).astype(np.uint8)
    reference = GRAPH.outputs(images.astype(np.int64)).reshape(20, -1).astype(np.int16)
    labels = reference.argmax(axis=1)
    labels[:5] = (labels[:5] + 1) % 10
    outputs = {"device_outputs": reference[:8].copy(), "host_outputs": reference.copy()}
    outputs["device_outputs"][:wrong_device, 3] += 1
    outputs["host_outputs"][:wrong_host, :] += 1
    return metrics(GRAPH, BOARD, SCHEDULE, SIZE, device, outputs, images, labels)


def test_names_are_the_contract() -> None:
    found = measured(DEVICE)
    extra = set(found) - set(METRICS)
    assert extra == {"status", "fits", "weight_sram_bytes"}


def test_accuracy_and_mismatches() -> None:
    found = measured(DEVICE, wrong_device=2, wrong_host=3)
    assert found["accuracy_int"] == 15 / 20
    assert found["images_host"] == 20 and found["mismatches_host"] == 3
    assert found["images_device"] == 8 and found["mismatches_device"] == 2
    assert found["status"] == "failed"
    assert found["error"] == (
        "the firmware's answers differ from the reference for 2 of 8 images on the device and "
        "3 of 20 images in the native program"
    )
    assert found["accuracy_device"] == pytest.approx(3 / 8, abs=2 / 8)
    assert measured(DEVICE)["accuracy_device"] == 3 / 8


@pytest.mark.parametrize(("wrong", "said"), [((1, 0), "1 of 8"), ((0, 1), "1 of 20"), ((0, 0), "")])
def test_one_wrong_answer_anywhere_is_a_failure(wrong: tuple[int, int], said: str) -> None:
    found = measured(DEVICE, *wrong)
    assert found["status"] == ("failed" if said else "ok")
    assert said in found.get("error", "") and ("error" in found) == bool(said)


def test_without_a_card_nothing_wears() -> None:
    found = measured(DEVICE)
    assert found["wear"] == found["card_write_bytes"] == found["card_read_bytes"] == 0


def test_time_and_energy_are_of_the_median_inference() -> None:
    found = timing(DEVICE, BOARD)
    assert found["cycles"] == 960_000
    assert found["compute_us"] == 60_000 and found["latency_us"] == 30_000
    power = BOARD.power
    expected = power.supply_volt * power.active_ma * 1e-3 * 60_000
    assert found["energy_uj"] == pytest.approx(expected)


def test_memory_is_measured_where_it_can_be_and_bounded_elsewhere() -> None:
    found = measured(DEVICE)
    assert (found["stack_bytes"], found["sram_bytes"]) == (44, 1994)
    found = measured({})
    assert (found["stack_bytes"], found["sram_bytes"]) == (60, 2010)
    assert "cycles" not in found and "energy_uj" not in found


def test_outputs_of_other_images_are_noticed() -> None:
    images = np.zeros((3, 28, 28, 1), np.uint8)
    outputs = {"device_outputs": np.zeros((0, 10)), "host_outputs": np.zeros((2, 10))}
    with pytest.raises(ThimbleError, match="2 answers for 3 images"):
        metrics(GRAPH, BOARD, SCHEDULE, SIZE, DEVICE, outputs, images, np.zeros(3))
