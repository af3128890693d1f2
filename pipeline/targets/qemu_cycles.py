"""Modelled cycles of a Cortex-M4, from counts of a QEMU plugin (firmware/simulators).

    cycles = instructions' own + P * taken branches + unaligned accesses + W * flash reads

P, the refill after a taken branch, is 1 to 3 (Arm DDI 0439, 3.3.1): 2 is taken, the others are the
band. W is the flash's wait states, for the reads that its caches do not hold. Checked against
silicon: the sources of MLPerf Tiny v1.0's microTVM entry, unchanged, come out 0.9 to 8.3 % low on
an STM32L4R5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import tools
from pipeline.targets.harness import FIRMWARE

PLUGIN = FIRMWARE / "simulators" / "qemu_cortex_m4.c"
CPU = "cortex-m4"
NEWEST_QEMU = 8
"""The last with version 1 of the plugin interface."""

REFILL_CYCLES = {"low": 1, "median": 2, "high": 3}
COUNTS = 6
IMAGES = 10
"""That cycles are modelled for: each access calls the plugin, and images hardly differ."""


def models(hardware: Hardware, qemu_version: str) -> bool:
    """Whether there are cycles to be had: of this core, from this QEMU."""
    major = re.search(r"version (\d+)\.", qemu_version)
    known = major is not None and int(major[1]) <= NEWEST_QEMU
    return hardware.cpu == CPU and hardware.flash_timing.read_bytes > 0 and known


def compile_plugin(folder: Path) -> Path:
    tools.require("cc", "gcc", "compiles the cycle model")
    command = ["cc", "-O2", "-std=gnu99", "-fPIC", "-shared", str(PLUGIN), "-o", "cycles.so"]
    tools.run(command, folder, "compiling the cycle model")
    return folder / "cycles.so"


def options(plugin: Path, out: Path, hardware: Hardware) -> Sequence[str]:
    """QEMU's, to count into the file ``out``."""
    flash = hardware.flash_timing
    values = {
        "out": out,
        "flash_bytes": hardware.flash_bytes,
        "read_log2": flash.read_bytes.bit_length() - 1,
        "line_log2": flash.line_bytes.bit_length() - 1,
        "instruction_lines": flash.instruction_lines,
        "data_lines": flash.data_lines,
    }
    return [
        "-plugin",
        ",".join([str(plugin), *(f"{key}={value}" for key, value in values.items())]),
    ]


def cycles(text: str, hardware: Hardware) -> dict[str, int]:
    """Of the median inference: ``median``, and the band ``low`` to ``high``; and the exact number
    of ``instructions``.

    Args:
        text: what the plugin wrote, a line for each inference.
    """
    rows = [[int(word) for word in line.split()] for line in text.splitlines()]
    if not rows or any(len(row) != COUNTS for row in rows):
        raise ThimbleError("the cycle model counted nothing: run stages generate and build again")
    counts = np.array(rows, np.int64)
    instructions, own, taken, unaligned, instruction_misses, data_misses = counts.T
    flash = hardware.flash_timing
    waits = flash.wait_states * (instruction_misses + data_misses)
    found = {
        name: int(np.sort(own + refill * taken + unaligned + waits)[(len(rows) - 1) // 2])
        for name, refill in REFILL_CYCLES.items()
    }
    return found | {"instructions": int(np.sort(instructions)[(len(rows) - 1) // 2])}
