"""The handful of numbers that a run ends with."""

from __future__ import annotations

from pipeline.runner.screen import summary

RESULT = {
    "latency_us": 26_157.6,
    "latency_max_us": 28_323.6,
    "layers": [
        {"layer": "pooled", "macs": 0, "cycles": 73_000},
        {"layer": "conv1", "macs": 10, "cycles": 93, "cycles_per_mac": 9.3},
        {"layer": "conv2", "macs": 10, "cycles": 44, "cycles_per_mac": 4.4},
    ],
}


def test_latency_says_how_it_depends_on_the_image() -> None:
    found = dict(summary(RESULT))
    assert found["latency"] == "26.2 ms after the last input byte, 28.3 ms for the slowest image"
    constant = dict(summary({**RESULT, "latency_max_us": 26_157.6}))
    assert constant["latency"] == "26.2 ms after the last input byte"


def test_cycles_per_mac_of_the_layers_that_have_macs() -> None:
    assert dict(summary(RESULT))["cycles/MAC"] == "conv1 9.3, conv2 4.4"
    assert "cycles/MAC" not in dict(summary({"latency_us": 1.0}))
