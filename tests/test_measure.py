"""Metrics count what their names say; on hand-made outputs whose answers are known."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline import measure
from pipeline.errors import ThimbleError
from pipeline.hardware import Card
from pipeline.metrics import METRICS_VERSION
from pipeline.plan.interpret import interpret
from pipeline.strategies.in_place import Herringbone
from pipeline.timing.summary import WITHOUT_CARD
from pipeline.words import METRICS
from tests.codegen.int8.loops import looped
from tests.codegen.int8.support import apart, frames
from tests.comparing import equal
from tests.graphs import random_graph
from tests.strategies.chains import board, mnist

GRAPH = mnist().graph()
BOARD = replace(board(), clock_hz=16_000_000)
PLAN = Herringbone("slots").plan(GRAPH, BOARD)
SCHEDULE = {
    "pmu_bytes": 430.5, "arena_bytes": 431, "weight_bytes": 1512.5, "macs": 9, "macs_executed": 10,
    "arena_over_bound_bytes": 1, **WITHOUT_CARD,
}  # fmt: skip
SIZE = {
    "status": "ok", "flash_bytes": 9000, "flash_limit_bytes": 32256, "sram_bytes": 2010,
    "sram_limit_bytes": 2048, "stack_bound_bytes": 60, "statics_bytes": 1950,
}  # fmt: skip
DEVICE = {
    "stack_bytes": 44,
    "sram_bytes": 1994,
    "compute_cycles": {"min": 900_000, "median": 960_000, "max": 970_000},
    "latency_cycles": {"min": 400_000, "median": 480_000, "max": 496_000},
    "layer_cycles": [  # in the order they are computed
        ["pool", 60_000], ["conv2", 500_000], ["permutations", 300_000], ["rest", 100_000],
    ],
}  # fmt: skip


def measured(
    device: dict[str, Any], wrong_device: int = 0, wrong_host: int = 0, **more: float
) -> dict[str, Any]:
    """``more``: what the schedule says besides."""
    schedule = SCHEDULE | more
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (20, 28, 28, 1)).astype(np.uint8)
    reference = GRAPH.evaluate(images.astype(np.int64)).reshape(20, -1).astype(np.int16)
    labels = reference.argmax(axis=1)
    labels[:5] = (labels[:5] + 1) % 10
    outputs = {"device_outputs": reference[:8].copy(), "host_outputs": reference.copy()}
    outputs["device_outputs"][:wrong_device, 3] += 1
    outputs["host_outputs"][:wrong_host, :] += 1
    return measure.metrics(GRAPH, PLAN, BOARD, schedule, SIZE, device, outputs, images, labels)


def test_accuracy_and_mismatches() -> None:
    """Check them on these images; names are the contract."""
    images = np.zeros((3, 28, 28, 1), np.uint8)
    outputs = {"device_outputs": np.zeros((0, 10)), "host_outputs": np.zeros((2, 10))}
    with pytest.raises(ThimbleError, match="2 answers for 3 images"):
        measure.metrics(GRAPH, PLAN, BOARD, SCHEDULE, SIZE, DEVICE, outputs, images, np.zeros(3))
    found = measured(DEVICE, wrong_device=2, wrong_host=3)
    linked = {"error", "statics_bytes", "arena_in_sram", "stack_measured_bytes"}
    assert set(found) - set(METRICS) == {"status", "fits", "weight_sram_bytes", "layers", *linked}
    assert found["metrics_version"] == METRICS_VERSION and found["images_reference"] == 20
    assert found["accuracy_int"] == 15 / 20
    assert found["images_host"] == 20 and found["mismatches_host"] == 3
    assert found["images_device"] == 8 and found["mismatches_device"] == 2
    assert found["status"] == "failed"
    assert found["error"] == (
        "the firmware's answers differ from the reference for 2 of 8 images on the device and "
        "3 of 20 images in the native program"
    )
    assert found["accuracy_device"] == pytest.approx(3 / 8, abs=2 / 8)
    right = measured(DEVICE)
    assert right["accuracy_device"] == 3 / 8 and right["status"] == "ok" and "error" not in right
    for wrong, said in (((1, 0), "1 of 8"), ((0, 1), "1 of 20")):
        found = measured(DEVICE, *wrong)
        assert found["status"] == "failed" and said in found["error"]


def test_large_networks_are_compared_on_the_first_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native program, equal on those, speaks for the rest."""
    monkeypatch.setattr("pipeline.measure.REFERENCE_MACS", 1)
    found = measured(DEVICE)
    assert found["images_reference"] == 8 and found["images_host"] == 20
    assert found["accuracy_int"] == 15 / 20 and found["mismatches_host"] == 0
    wrong = measured(DEVICE, wrong_device=8, wrong_host=20)
    assert wrong["mismatches_host"] == 8 and wrong["mismatches_device"] == 8
    monkeypatch.setattr("pipeline.measure.REFERENCE_MACS", 19 * GRAPH.macs)
    assert measured(DEVICE, wrong_host=20)["images_reference"] == 19


def test_with_a_card_energy_and_wear_are_the_plan_s_and_without_nothing_wears() -> None:
    found = measured(DEVICE)
    assert found["wear"] == found["card_write_bytes"] == found["card_read_bytes"] == 0
    assert found["write_amplification_erase"] == found["wear_worst"] == found["energy_io_uj"] == 0
    assert found["energy_compute_uj"] == found["energy_uj"] > 0
    states = {"compute": 5.0, "io": 3.0, "both": 2.0, "idle": 1.0}
    said = {f"energy_{state}_uj": uj for state, uj in states.items()}
    said |= {"energy_uj": 11.0, "wear": 9.0, "wear_years_half_worst": 4.0}
    found = measured(DEVICE, **said)
    assert {name: found[name] for name in said} == said


def test_time_energy_and_cycles_are_of_the_median_inference() -> None:
    found = measure.timing(DEVICE, BOARD)
    assert found["cycles"] == 960_000
    assert found["compute_us"] == 60_000 and found["latency_us"] == 30_000
    assert found["latency_max_us"] == 31_000
    power = BOARD.power
    expected = power.supply_volt * power.active_ma * 1e-3 * 60_000
    assert found["energy_uj"] == pytest.approx(expected)
    pool, conv, moves, rest = measure.by_layer(DEVICE, GRAPH)["layers"]
    assert conv == {
        "layer": "conv2", "macs": 36_000, "cycles": 500_000, "cycles_per_mac": 500_000 / 36_000,
    }  # fmt: skip
    assert pool == {"layer": "pool", "macs": 0, "cycles": 60_000}
    assert (moves["macs"], rest["cycles"]) == (0, 100_000)
    assert measure.by_layer({}, GRAPH) == {}


def test_memory_is_measured_where_it_can_be_and_two_times_of_a_card() -> None:
    found = measured(DEVICE)
    assert (found["stack_bytes"], found["sram_bytes"]) == (44, 1994)
    four = ("liveness_bytes", "arena_bytes", "linked_bytes", "sram_bytes")
    assert [found[name] for name in four] == [430, 431, 2010, 1994]
    found = measured({})
    assert (found["stack_bytes"], found["sram_bytes"]) == (60, 2010)
    assert "stack_measured_bytes" not in found
    assert "cycles" not in found and "energy_uj" not in found
    device = {**DEVICE, "card_cycles": 320_000}
    alone = replace(BOARD, card=Card(dma=False))
    assert measure.beside_card(device, alone) == {"compute_us": 40_000, "io_us": 20_000}
    assert measure.beside_card(DEVICE, alone) == {}
    found = measured(device, io_us=7)
    assert (found["compute_us"], found["io_us"]) == (40_000, 7), "beside the core"
    assert found["cycles"] == 960_000


def test_a_modelled_latency_has_its_band_and_a_boards_own_timer_its_clock() -> None:
    counts = {"low": 16_000, "median": 32_000, "high": 48_000, "instructions": 9}
    counts |= {"compute_cycles": 64_000, "compute_instructions": 18}
    unknown = measured({"modelled_cycles": counts})
    assert unknown["latency_us"] == 2000 and unknown["latency_high_us"] == 3000
    assert unknown["compute_us"] == 4000 and unknown["instructions"] == 18
    assert "latency_error_pct" not in unknown
    checked = measured({"modelled_cycles": {**counts, "error_pct": 5.0, "evidence": "silicon"}})
    assert (checked["latency_error_pct"], checked["latency_evidence"]) == (5.0, "silicon")
    spread = {"min": 7000, "median": 8000, "max": 9000}
    found = measured({"invoke_cycles": spread})
    assert found["latency_us"] == 8000 / BOARD.clock_hz * 1e6
    assert "cycles" not in found, "of nn_invoke alone, which is not all work"
    overrun = dict.fromkeys(spread, 4294967295)
    assert "latency_us" not in measured({"invoke_cycles": overrun})


def test_agreement_is_with_the_float_networks_labels() -> None:
    """Compare the images that it was asked about; its accuracy is of the same."""
    host = np.zeros((6, 10), np.int16)
    host[range(6), [3, 1, 4, 1, 5, 9]] = 1
    says, labels = np.array([3, 1, 4, 2]), np.array([3, 1, 0, 0, 5, 9])
    found = measure.float_network(GRAPH, host, says, labels)
    assert found == {"images_float": 4, "agreement_float": 3 / 4, "accuracy_float": 2 / 4}
    assert set(found) <= set(METRICS)
    assert "accuracy_float" not in measure.float_network(GRAPH, host, says, labels[:0])
    assert measure.float_network(GRAPH, host, says[:0], labels) == {}


def test_rounded_sums_are_compared_with_the_interpreter() -> None:
    """Such a plan gives other outputs than the graph, and that is no mistake."""
    graph = random_graph(4)
    plan = looped(graph, 4, rounded=True)
    given = frames(graph, 9, 4)
    held = np.stack([interpret(plan, graph, frame).output for frame in given])
    assert (held != graph.evaluate(given)).any()
    found = measure.references(graph, plan, given.astype(np.int8))
    equal(found, held[:8].reshape(8, -1))
    exact = measure.references(graph, apart(graph), given.astype(np.int8))
    equal(exact, graph.evaluate(given).reshape(9, -1))
    assert measure.references(graph, plan, given[:0]).shape == (0, exact.shape[1])


LABELS = np.array([3] * 6 + [1] * 3 + [0])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"accuracy_int": 0.6}, "accuracy 60.00% is no better than .* label (60.00%): the network"),
        ({"accuracy_int": 0.1, "accuracy_float": 0.1}, "has learnt nothing of this data; train it"),
        ({"accuracy_int": 0.1, "accuracy_float": 0.9}, "quantization lost .* (90.00%); try"),
        ({"accuracy_int": 0.61}, ""),
        ({"accuracy_int": 0.7, "accuracy_float": 0.1}, ""),
        ({"accuracy_int": 0.1, "random_weights": True}, ""),
        ({}, ""),
    ],
)
def test_accuracy_that_is_no_better_than_chance_is_said(found: dict[str, Any], said: str) -> None:
    for none in (np.zeros(5, np.uint8), np.zeros(0, np.uint8)):
        assert measure.warnings(found, none) == {}, "one label or none is no chance"
    told = measure.warnings(found, LABELS)
    if not said:
        assert told == {}
        return
    (line,) = told["warnings"]
    assert re.search(said.replace("(", r"\(").replace(")", r"\)"), line) and "\n" not in line
