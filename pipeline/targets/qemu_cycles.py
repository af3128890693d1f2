"""Modelled cycles of a Cortex-M, from counts of a QEMU plugin (firmware/simulators).

    cycles = instructions' own + paired's share + P * taken branches + unaligned accesses
           + W * flash reads + reads of memories outside of the chip

The own cycles are the core's header's. P is the refill after a taken branch. W is the flash's wait
states, for reads that its caches do not hold, weighted where a prefetch hides some. Where the
manual leaves a number open, the model takes a middle one, and a low and a high one as its band.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.errors import ThimbleError
from pipeline.hardware import FlashTiming, Hardware
from pipeline.targets import machines, tools
from pipeline.targets.elf import AVR_DATA_ADDRESS
from pipeline.targets.harness import FIRMWARE
from pipeline.targets.layers import prefix_of

SIMULATORS = FIRMWARE / "simulators"
NEWEST_QEMU = 8
"""The last with version 1 of the plugin interface."""

IMAGES = 10
"""Images that cycles are modelled for: each access calls the plugin, and images hardly differ."""

BAND = ("low", "median", "high")
MEDIAN = 1 + BAND.index("median")
"""Its place behind the instructions."""

Counts = npt.NDArray[np.int64]
COUNTS = (
    "instructions", "own", "paired", "taken", "unaligned",
    "jump_misses", "next_misses", "data_misses", "rom_misses", "ram_misses",
)  # fmt: skip


@dataclass(frozen=True)
class Core:
    """Costs that a core's model adds to its counts, each as (low, middle, high).

    Attributes:
        timing: the header with the cycles of instructions.
        refill: after a taken branch.
        next_miss: share of the wait states that an instruction's read costs when it follows the
            one before: less than 1 where a prefetch hides them.
        paired: cycles of an instruction that was issued together with another.
        unaligned: share of the cycles that an access across words adds on a Cortex-M4.
    """

    timing: str
    refill: tuple[float, float, float]
    next_miss: tuple[float, float, float] = (1, 1, 1)
    paired: tuple[float, float, float] = (0, 0, 0)
    unaligned: float = 1


CORES = {
    "cortex-m0plus": Core("cortex_m0plus_timing.h", (1, 1, 1), (0, 0, 1)),
    "cortex-m3": Core("cortex_m3_timing.h", (1, 2, 3), (0, 0, 1)),
    "cortex-m4": Core("cortex_m4_timing.h", (1, 2, 3)),
    "cortex-m33": Core("cortex_m33_timing.h", (1, 2, 3)),
    "cortex-m7": Core("cortex_m7_timing.h", (0, 1, 2), paired=(0, 0, 0.5), unaligned=0),
}  # fmt: skip
"""Cores by ``hardware.cpu``."""


@dataclass(frozen=True)
class Evidence:
    """``error_pct``: the largest error of a core's model, with this flash, against ``source``."""

    cpu: str
    flash: FlashTiming
    error_pct: float
    source: str


VALIDATED = (
    Evidence(
        "cortex-m4", FlashTiming(5, 8, 32, 32, 8), 12.3,
        "MLPerf Tiny v1.0 and v1.1, microTVM and Tiny ONNC on the NUCLEO-L4R5ZI, sixteen programs, "
        "thirteen of them within 6 %",
    ),
    Evidence(
        "cortex-m33", FlashTiming(4, 16, 16, 512, instruction_ways=2, unified=True), 8.0,
        "MLPerf Tiny v1.0, microTVM with CMSIS-NN on an nRF5340, four networks, with this flash in "
        "place of its own",
    ),
)  # fmt: skip
"""Evidence from programs whose constants are in flash. Any other core or flash is unvalidated."""


def models(hardware: Hardware, qemu_version: str) -> bool:
    """Check whether there are cycles to be had: of this core and flash, from this QEMU."""
    known = takes_plugins(qemu_version)
    return hardware.cpu in CORES and hardware.flash_timing.read_bytes > 0 and known


def takes_plugins(qemu_version: str) -> bool:
    """Check whether this QEMU has the interface that plugins here are written for."""
    major = re.search(r"version (\d+)\.", qemu_version)
    return major is not None and int(major[1]) <= NEWEST_QEMU


def compile_plugin(folder: Path, hardware: Hardware) -> Path:
    """Compile the model with the core's own timing into ``folder``; return the library's path."""
    tools.require("cc", "gcc", "compiles the cycle model")
    timing = f'-DTIMING="{CORES[hardware.cpu].timing}"'
    source = str(SIMULATORS / "qemu_cortex_m.c")
    command = ["cc", "-O2", "-std=gnu99", "-fPIC", "-shared", timing, source, "-o", "cycles.so"]
    tools.run(command, folder, "compiling the cycle model")
    return folder / "cycles.so"


CALLS = ("init", "feed", "listen")
"""Ends of the names of what the harness calls before nn_invoke."""

Functions = Mapping[str, tuple[int, int]]
"""Start and bytes of each function, by name."""


def ordered(functions: Functions) -> list[str]:
    """Sort functions by address, as the plugin wants them; of those at one place take one."""
    names = {place: name for name, place in functions.items() if place[1]}
    return [names[place] for place in sorted(names)]


def calls_beside(out: Path) -> Path:
    """Return the file beside ``out`` in which calls are counted."""
    return out.with_suffix(".calls")


def options(
    plugin: Path,
    out: Path,
    hardware: Hardware,
    functions: Functions | None = None,
    callers: Collection[str] = (),
) -> Sequence[str]:
    """QEMU's, to count into the file ``out``, of each of ``functions``, too, and of each call that
    ``callers`` make."""
    flash, machine = hardware.flash_timing, machines.machine(hardware)
    known, table = functions or {}, out.with_suffix(".functions")
    origin = machine.flash_start - machine.flash_start % AVR_DATA_ADDRESS  # elf.read leaves it out
    places = [(*known[name], name in callers) for name in ordered(known)]
    lines = (f"{origin + at:x} {origin + at + size:x} {call:d}\n" for at, size, call in places)
    table.write_text("".join(lines))
    named, prefix = {name: at for name, (at, _) in known.items()}, prefix_of(known)
    calls = {word: named[f"{prefix}{word}"] for word in CALLS if f"{prefix}{word}" in named}
    values = {
        "out": out,
        "functions": table,
        **{word: origin + at for word, at in calls.items()},
        "flash_start": machine.flash_start,
        "flash_bytes": hardware.flash_bytes,
        "rom_start": machine.outside_start,
        "ram_start": machine.outside_ram_start,
        "outside_bytes": machines.OUTSIDE_BYTES,
        "read_log2": flash.read_bytes.bit_length() - 1,
        "line_log2": flash.line_bytes.bit_length() - 1,
        "instruction_lines": flash.instruction_lines,
        "instruction_ways": flash.instruction_ways,
        "data_lines": flash.data_lines,
        "data_ways": flash.data_ways,
        "unified": int(flash.unified),
    }
    if callers:
        values["calls"] = calls_beside(out)
    return [
        "-plugin",
        ",".join([str(plugin), *(f"{key}={value}" for key, value in values.items())]),
    ]


def cycles(
    text: str, hardware: Hardware, functions: Functions | None = None, calls: str = ""
) -> dict[str, Any]:
    """Return the cycles of nn_invoke in the median inference: ``median``, and the band ``low`` to
    ``high``; the exact number of ``instructions``; ``compute_cycles`` and ``compute_instructions``,
    the same with nn_init and nn_feed; where this core with this flash was compared with
    measurements, ``error_pct`` and ``evidence``; ``functions``, the cycles of each that took any,
    without what it called, which are ``compute_cycles`` together; ``invoke_functions``, of
    nn_invoke the instructions of each and its cycles, as ``BAND``; ``calls``, the same of each call
    in order, with what it called.

    Args:
        text: what the plugin wrote, a line for each inference.
        functions: those that it was told of.
        calls: what it wrote of them.
    """
    names, width = ordered(functions or {}), len(COUNTS)
    rows = [[int(word) for word in line.split()] for line in text.splitlines()]
    if not rows or any(len(row) != 2 * width * (1 + len(names)) for row in rows):
        raise ThimbleError("the cycle model counted nothing: run stages generate and build again")
    counts = np.array(rows, np.int64).reshape(len(rows), 2, -1, width)
    invoked, whole = _timed(counts, hardware).swapaxes(0, 1)
    found: dict[str, Any] = {name: _middle(invoked[:, 0, at]) for at, name in enumerate(BAND, 1)}
    found["instructions"] = _middle(invoked[:, 0, 0])
    found["compute_cycles"] = _middle(whole[:, 0, MEDIAN])
    found["compute_instructions"] = _middle(whole[:, 0, 0])
    median = int(np.argsort(whole[:, 0, MEDIAN], kind="stable")[(len(rows) - 1) // 2])
    each = zip(names, whole[median, 1:, MEDIAN], strict=True)
    if took := {name: round(float(n)) for name, n in each if n}:
        found["functions"] = took
        found["invoke_functions"] = dict(_rounded(names, invoked[median, 1:]))
    if calls:
        lines = [line.split() for line in calls.split("\n\n")[median].splitlines()]
        called = np.array(lines, np.int64).reshape(-1, 1 + width)
        named = [[*names, ""][number] for number in called[:, 0]]
        found["calls"] = _rounded(named, _timed(called[:, 1:], hardware))
    for known in VALIDATED:
        if (known.cpu, known.flash, "flash") == (
            hardware.cpu, hardware.flash_timing, hardware.weights_in
        ):  # fmt: skip
            found |= {"error_pct": known.error_pct, "evidence": known.source}
    return found


def _rounded(names: Sequence[str], timed: Any) -> list[tuple[str, list[int]]]:
    return list(zip(names, np.rint(timed).astype(np.int64).tolist(), strict=True))


def _timed(counts: Counts, hardware: Hardware) -> Any:
    """(…, len(COUNTS)) -> (…, 4): instructions, and the cycles of ``BAND``."""
    of, core = dict(zip(COUNTS, np.moveaxis(counts, -1, 0), strict=True)), CORES[hardware.cpu]
    rom, ram = hardware.external("rom"), hardware.external("ram")
    outside = ((rom, of["rom_misses"]), (ram, of["ram_misses"]))
    beside = of["own"] + core.unaligned * of["unaligned"]
    beside = beside + sum(region.read_cycles * misses for region, misses in outside if region)
    cycles = [
        beside
        + core.paired[at] * of["paired"]
        + core.refill[at] * of["taken"]
        + hardware.flash_timing.wait_states
        * (of["jump_misses"] + core.next_miss[at] * of["next_misses"] + of["data_misses"])
        for at in range(len(BAND))
    ]
    return np.stack([of["instructions"], *cycles], axis=-1)


def _middle(values: Any) -> int:
    """Return the median, the lower of two."""
    return int(np.sort(values)[(len(values) - 1) // 2])
