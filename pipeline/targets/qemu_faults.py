"""Why a firmware on a simulated core came to a bad end, in a few words."""

from __future__ import annotations

import re
from pathlib import Path

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import elf, machines, tools

FAULT = 2
EXITS = {3: "could not open its files", 4: "could not write its answers"}
"""Meanings of the exit codes of the firmware's port (firmware/ports/cortex_m)."""

BROKEN = (
    (1 << 0 | 1 << 8, "jumped to where no code may be"),
    (1 << 16, "ran an undefined instruction"),
    (1 << 17 | 1 << 18, "left Thumb state"),
    (1 << 19, "used a coprocessor that is off"),
    (1 << 24, "read or wrote at an address that is not a multiple of the size"),
)
"""Bits of the Configurable Fault Status Register (ARMv7-M, B3.2.15) that are no matter of reach."""

_FAULT = re.compile(r"fault status=(\w{8}) address=(\w{8}) pc=(\w{8})")


def explained(code: int, said: str, program: Path, hardware: Hardware, stack_bytes: int) -> str:
    """Say how QEMU ended, in words that follow "the firmware …".

    Args:
        code, said: QEMU's exit code and standard error.
        stack_bytes: what the stack may take.
    """
    found = _FAULT.search(said)
    if code != FAULT or found is None:
        return EXITS.get(code) or f"ended with {code}: {tools.telling(said)}"
    status, address, pc = (int(word, 16) for word in found.groups())
    reached = [what for bits, what in BROKEN if status & bits]
    what = reached[0] if reached else _reach(address, hardware, stack_bytes)
    return f"{what}, {_function(pc, program, hardware)}"


def _reach(address: int, hardware: Hardware, stack_bytes: int) -> str:
    """Say where an access went, in the board's own addresses if it was about the RAM."""
    ram = [region for region in hardware.regions if region.kind == "ram"]
    offset = address - machines.machine(hardware).ram_start
    shown = ram[0].start + offset if ram else address
    title = f"the {hardware.sram_bytes} B of RAM of {hardware.title}"
    if -machines.DESK_OFFSET < offset < 0:
        return f"needed a stack of {stack_bytes - offset} B or more, {-offset} B below {title}"
    if hardware.sram_bytes <= offset < machines.DESK_OFFSET:
        beyond = offset - hardware.sram_bytes
        return f"read or wrote at {shown:#x}, {beyond} B past the end of {title}"
    machine = machines.machine(hardware)
    for region, start in (
        (hardware.external("rom"), machine.outside_start),
        (hardware.external("ram"), machine.outside_ram_start),
    ):
        if region and start and start <= address < start + machines.OUTSIDE_BYTES:
            at = region.start + address - start
            return f"read or wrote at {at:#x}, of {region.name}, what it may not there"
    return f"read or wrote at {address:#x}, where {hardware.title} has no memory that it may use so"


def _function(pc: int, program: Path, hardware: Hardware) -> str:
    """Say which function ``pc`` is in, as far as the program's symbols are at hand."""
    if not pc:
        return "where is not known: no stack was left to keep it"
    try:
        symbols = elf.read(program, hardware.toolchain.objdump).symbols
    except (ThimbleError, OSError):
        return f"at {pc:#x}"
    at = pc % elf.AVR_DATA_ADDRESS
    code = [s for s in symbols if s.section == ".text"]
    names = [s.name for s in code if s.address <= at < s.address + s.bytes]
    return f"in {names[0]} at {pc:#x}" if names else f"at {pc:#x}"
