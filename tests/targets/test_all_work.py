"""Cycles, instructions, time and energy are of all CPU work of an inference, on every board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.measure import timing
from pipeline.targets import device
from tests.boards import NAMES
from tests.targets.conftest import needs_avr
from tests.targets.cortex_m import ONE_A_CORE, board_named, built_stand_in, needs_arm
from tests.tiers import quick

pytestmark = pytest.mark.usefixtures("compiled_once")
BYTES = 16
"""Of the stand-in's input."""

LOOP = "\nfor (volatile int16_t n = 0; n < {}; n++) {{\n}}\n"


def figures(folder: Path, name: str, fed: int, invoked: int) -> dict[str, Any]:
    """Of a stand-in that makes so many rounds of a loop for each byte, and in nn_invoke."""
    hardware = board_named(name)
    parts = {"feed": LOOP.format(fed), "invoke": LOOP.format(invoked)}
    size = built_stand_in(folder, hardware, **parts)
    images = np.zeros((1, 4, 4, 1), np.uint8)
    target = {"name": "simulate", "images": 1}
    report, _ = device.measure(target, folder / "build", vars(size), hardware, images)
    return timing(report, hardware) | {"power": hardware.power, "hz": hardware.clock_hz}


FIRST = ("arduino", *ONE_A_CORE)
OTHERS = [name for name in NAMES if name not in (*FIRST, "host")]


@needs_arm
@needs_avr
@pytest.mark.parametrize(
    "name",
    quick(
        1,
        ["arduino", *ONE_A_CORE, *(n for n in NAMES if n not in ("arduino", "host", *ONE_A_CORE))],
        ci=2,
    ),
)
def test_feeding_counts_as_much_as_invoking(name: str, tmp_path: Path) -> None:
    most = {"none": (0, 0), "feeding": (20, 0), "invoking": (0, 20 * BYTES)}
    none, feeding, invoking = (
        figures(tmp_path / word, name, *rounds) for word, rounds in most.items()
    )
    assert feeding["cycles"] - none["cycles"] > 20 * BYTES * 4  # a round's instructions at least
    for key in {"cycles", "instructions"} & none.keys():
        fed, invoked = (each[key] - none[key] for each in (feeding, invoking))
        assert fed == pytest.approx(invoked, rel=0.2), key  # caches begin cold at each byte
    assert feeding["latency_us"] < none["latency_us"] + 0.1 * (
        invoking["latency_us"] - none["latency_us"]
    ), "but of one byte it happened before the last one came"
    for found in (none, feeding, invoking):
        assert found["compute_us"] == pytest.approx(found["cycles"] / found["hz"] * 1e6)
        if found["power"].active_ma:
            expected = found["power"].active_uj(found["compute_us"])
            assert found["energy_uj"] == pytest.approx(expected)
        assert ("energy_uj" in found) == bool(found["power"].active_ma)


def test_what_nobody_times_has_no_figures() -> None:
    assert timing({"images": 3}, board_named("host")) == {}
