"""Check a board's facts: that each is there, and that they agree with each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import cortex_m, cortex_m_board, flash, harness, machines, qemu_cycles
from pipeline.targets.device import SIMULATORS

LEAST_SOURCE = 20
"""Characters of a source of figures; fewer name none."""


def faults(hardware: Hardware) -> Iterator[str]:
    """Yield a line for each fact that is missing or cannot be, and what to do."""
    for key in ("title", "part"):
        if not getattr(hardware, key):
            yield f"hardware.{key} is empty: it is what messages and compilers call the board"
    for key, figures in (("power", True), ("card", hardware.card.bytes)):
        if figures and len(getattr(hardware, key).source) < LEAST_SOURCE:
            yield f"hardware.{key}.source: say where its figures are from, or why there are none"
    if not 0 <= hardware.stack_reserve_bytes < hardware.sram_bytes:
        yield f"hardware.stack_reserve_bytes={hardware.stack_reserve_bytes}: it is not below SRAM"
    if hardware.simulator not in SIMULATORS:
        yield f"hardware.simulator={hardware.simulator!r}: have {', '.join(SIMULATORS)}"
    yield from _raised(lambda: harness.harness_sources(hardware))
    yield from _raised(lambda: (hardware.activation_memory, hardware.weight_memory))
    if hardware.core != harness.HOST:
        yield from _raised(lambda: flash.flashing(hardware, "PORT", flash.HEX))
    if hardware.core == "cortex_m":
        yield from _memories(hardware)
        yield from _of_core(hardware)
        yield from _timing(hardware)


def _raised(check: Callable[[], object]) -> Iterator[str]:
    try:
        check()
    except ThimbleError as error:
        yield str(error)


def _memories(hardware: Hardware) -> Iterator[str]:
    """Regions do not overlap, and have what ``sram_bytes`` and ``flash_bytes`` count."""
    spans = sorted((r.start, r.start + r.bytes, r.name) for r in hardware.regions)
    for (_, stop, name), (start, _, other) in pairwise(spans):
        if stop > start:
            yield f"hardware.regions: {name} and {other} overlap at {start:#x}"
    roms = [r.bytes for r in hardware.regions if r.kind == "rom" and not r.external]
    for key, found in (("sram_bytes", hardware.ram_in_one_piece), ("flash_bytes", sum(roms))):
        if (given := getattr(hardware, key)) != found:
            where = " in one piece, from the first region on" if key == "sram_bytes" else ""
            yield f"hardware.{key}={given}: hardware.regions has {found} B{where}"


def _of_core(hardware: Hardware) -> Iterator[str]:
    """There is a machine, a model of cycles and a compiler's option for it."""
    yield from _raised(lambda: machines.machine(hardware))
    if (granted := cortex_m.ram_bytes(hardware)) != hardware.sram_bytes:
        yield f"hardware.sram_bytes={hardware.sram_bytes}: memory protection grants {granted} B"
    if hardware.cpu not in qemu_cycles.CORES:
        yield f"hardware.cpu={hardware.cpu}: its cycles have no model"
    if f"-mcpu={hardware.cpu}" not in hardware.toolchain.flags:
        yield f"hardware.toolchain.flags: -mcpu={hardware.cpu} is not among them"
    boot = harness.FIRMWARE / "ports" / "cortex_m" / f"boot_{hardware.uart.boot}.h"
    if hardware.uart.boot and not boot.is_file():
        yield f"hardware.uart.boot={hardware.uart.boot}: there is no {boot.name}"
    if hardware.uart.base:
        yield from _raised(lambda: cortex_m_board.divisor(hardware.uart, hardware.baud))


def _timing(hardware: Hardware) -> Iterator[str]:
    """Reads and lines are powers of two, and lines fill their ways."""
    timing = hardware.flash_timing
    for key in ("read_bytes", "line_bytes"):
        if (size := getattr(timing, key)) < 1 or size & (size - 1):
            yield f"hardware.flash_timing.{key}={size}: a power of two, for a model of cycles"
    if timing.line_bytes < timing.read_bytes:
        yield f"hardware.flash_timing.line_bytes={timing.line_bytes}: a line holds whole reads"
    for lines, ways, what in (
        (timing.instruction_lines, timing.instruction_ways, "instruction"),
        (timing.data_lines, timing.data_ways, "data"),
    ):
        if ways and lines % ways:
            yield f"hardware.flash_timing.{what}_lines={lines}: not a multiple of its {ways} ways"
