"""Sections and symbols of a linked program, as ``objdump -h -t`` prints them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pipeline.targets import tools

AVR_DATA_ADDRESS = 0x800000
"""Address where avr-ld puts the data space, so that its addresses differ from the program's."""

RAM_SECTIONS = (".data", ".rodata", ".bss", ".noinit")
"""Sections that occupy data memory; the start-up code copies or clears the first three."""

_SECTION = re.compile(r"^\s*\d+ (\.\S+)\s+([0-9a-f]+)\s+([0-9a-f]+)\s")
_SYMBOL = re.compile(r"^([0-9a-f]+) .{5}(.)(.) (\S+)\s+([0-9a-f]+)\s+(?:\.hidden\s+)?(\S+)$")


@dataclass(frozen=True)
class Section:
    name: str
    address: int
    bytes: int


@dataclass(frozen=True)
class Symbol:
    name: str
    section: str
    address: int
    bytes: int
    is_object: bool


@dataclass(frozen=True)
class Elf:
    """A linked program: its sections by name, and the symbols that lie in one."""

    sections: dict[str, Section]
    symbols: tuple[Symbol, ...]

    def size(self, *names: str) -> int:
        return sum(self.sections[name].bytes for name in names if name in self.sections)

    @property
    def statics_bytes(self) -> int:
        return self.size(*RAM_SECTIONS)

    @property
    def flash_bytes(self) -> int:
        """Code, constants and the initial values of ``.data``."""
        return self.size(".text", ".data", ".rodata")

    @property
    def statics_end(self) -> int:
        """The first data address after all statics: the lowest a stack may reach."""
        ends = [s.address + s.bytes for s in self.sections.values() if s.name in RAM_SECTIONS]
        return max(ends, default=0)

    @property
    def ram_objects(self) -> tuple[Symbol, ...]:
        return tuple(s for s in self.symbols if s.section in RAM_SECTIONS and s.bytes)

    @property
    def labels(self) -> dict[int, str]:
        """Code labels by address, functions before local labels."""
        code = [s for s in self.symbols if s.section == ".text" and not s.is_object]
        return {s.address: s.name for s in sorted(code, key=lambda s: (s.bytes, s.name))}


def read(elf: Path, objdump: str) -> Elf:
    """Parse ``elf``. Data addresses are the chip's own (without avr-ld's offset)."""
    text = tools.run([objdump, "-h", "-t", elf.name], elf.parent, "reading the linked program")
    sections: dict[str, Section] = {}
    symbols = []
    for line in text.splitlines():
        if found := _SECTION.match(line):
            name, size, address = found[1], int(found[2], 16), int(found[3], 16)
            sections[name] = Section(name, address % AVR_DATA_ADDRESS, size)
        elif (found := _SYMBOL.match(line)) and found[4].startswith("."):
            address, size = int(found[1], 16) % AVR_DATA_ADDRESS, int(found[5], 16)
            if found[2] not in "d" and found[3] not in "df":
                symbols.append(Symbol(found[6], found[4], address, size, found[3] == "O"))
    return Elf(sections, tuple(symbols))
