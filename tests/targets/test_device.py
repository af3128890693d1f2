"""What stages build and simulate find, and what they say where they cannot."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import device
from pipeline.targets.toolchain import Size
from tests.targets.conftest import expected, load_hardware, needs_avr

TEST_SET = np.random.default_rng(3).integers(0, 256, (300, 4, 4, 1)).astype(np.uint8)


def measure(built: tuple[Path, Size], hardware: Hardware, **target: Any) -> Any:
    return device.measure(target, built[0], asdict(built[1]), hardware, TEST_SET)


@needs_avr
def test_every_output_on_the_chip_and_on_the_host_is_exact(
    built: tuple[Path, Size], arduino: Hardware, shim: Path
) -> None:
    report, arrays = measure(built, arduino, name="simulate", images=25)
    np.testing.assert_array_equal(arrays["host_outputs"], expected(TEST_SET))
    np.testing.assert_array_equal(arrays["device_outputs"], expected(TEST_SET)[:25])
    assert report["images"] == len(arrays["latency_cycles"]) == len(arrays["compute_cycles"]) == 25
    assert report["host"] == {"images": 300}
    assert report["sram_bytes"] == report["statics_bytes"] + report["stack_bytes"]
    assert report["statics_bytes"] == built[1].statics_bytes
    spread = report["latency_cycles"]
    assert 0 < spread["min"] <= spread["median"] <= spread["max"]
    assert spread["max"] == arrays["latency_cycles"].max()


@needs_avr
def test_the_host_and_no_images_are_targets_too(
    built: tuple[Path, Size], arduino: Hardware, shim: Path
) -> None:
    report, arrays = measure(built, arduino, name="host", images=40)
    assert report["images"] == len(arrays["device_outputs"]) == 40
    assert "latency_cycles" not in report and "stack_bytes" not in report
    report, _ = measure(built, arduino, name="host", images=99_999)  # all that there are
    assert report["images"] == 300
    report, arrays = measure(built, arduino, name="simulate", images=0)
    assert arrays["device_outputs"].shape == (0, 3)
    assert report["stack_bytes"] > 0


@needs_avr
def test_an_unknown_simulator_and_a_missing_port_are_one_line(built: tuple[Path, Size]) -> None:
    with pytest.raises(ThimbleError, match=r"no simulator 'spice'; have simavr, native, qemu; try"):
        measure(built, load_hardware(simulator="spice"), name="simulate", images=1)
    with pytest.raises(ThimbleError, match=r"target\.images=-1"):
        measure(built, load_hardware(), name="host", images=-1)
    with pytest.raises(ThimbleError, match=r"needs target.port"):
        measure(built, load_hardware(), name="flash", images=0, port="")
