"""Read a linked 32-bit program (ELF) by itself: code, symbols, and which bytes are instructions."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipeline.errors import ThimbleError

PROGBITS, SYMBOLS = 1, 2
WRITABLE, ALLOCATED, EXECUTABLE = 1, 2, 4
FUNCTION, OBJECT = 2, 1


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    flags: int
    address: int
    content: bytes
    link: int


@dataclass(frozen=True)
class Symbol:
    """``kind``: ``FUNCTION``, ``OBJECT`` or neither, such as a mark of the linker's."""

    name: str
    address: int
    bytes: int
    kind: int


@dataclass(frozen=True)
class Program:
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    @classmethod
    def read(cls, path: Path) -> Program:
        """
        Raises:
            ThimbleError: for what is not a little-endian 32-bit ELF.
        """
        data = path.read_bytes()
        if data[:6] != b"\x7fELF\x01\x01":
            raise ThimbleError(f"{path.name} is no 32-bit program: run stage build again")
        (table,), (size, count, names) = _at("<I", data, 32), _at("<HHH", data, 46)
        heads = [_at("<10I", data, table + n * size) for n in range(count)]
        texts = data[heads[names][4] :]
        sections = tuple(
            Section(
                _text(texts, head[0]), head[1], head[2], head[3],
                b"" if head[1] not in (PROGBITS, SYMBOLS, 3) else data[head[4] : head[4] + head[5]],
                head[6],
            )
            for head in heads
        )  # fmt: skip
        return cls(sections, tuple(_symbols(sections)))

    @property
    def loaded(self) -> Iterator[Section]:
        """Sections with a content in memory."""
        return (s for s in self.sections if s.flags & ALLOCATED and s.content)

    @cached_property
    def value(self) -> dict[str, Symbol]:
        """Symbols by name."""
        return {symbol.name: symbol for symbol in self.symbols}

    @cached_property
    def functions(self) -> list[Symbol]:
        """Functions by address, without the bit that says that they are Thumb's."""
        found = [
            Symbol(s.name, s.address & ~1, s.bytes, s.kind)
            for s in self.symbols
            if s.kind == FUNCTION and s.bytes
        ]
        return sorted(found, key=lambda s: s.address)

    def function_at(self, address: int) -> Symbol | None:
        starts = [each.address for each in self.functions]
        place = bisect_right(starts, address) - 1
        found = self.functions[place] if place >= 0 else None
        return found if found and address < found.address + found.bytes else None

    def code(self) -> Iterator[tuple[int, bytes]]:
        """Yield stretches of instructions, without the data between: address, content."""
        for section in self.loaded:
            if not section.flags & EXECUTABLE:
                continue
            stop = section.address + len(section.content)
            marks = sorted(
                (symbol.address, symbol.name[:2] == "$t")
                for symbol in self.symbols
                if symbol.name[:2] in ("$t", "$d") and section.address <= symbol.address < stop
            )
            for (start, instructions), (end, _) in zip(
                marks, [*marks[1:], (stop, False)], strict=True
            ):
                if instructions and start < end:
                    yield start, section.content[start - section.address : end - section.address]


def _at(layout: str, data: bytes, place: int) -> tuple[int, ...]:
    return struct.unpack_from(layout, data, place)


def _text(texts: bytes, place: int) -> str:
    return texts[place : texts.index(b"\0", place)].decode(errors="replace")


def _symbols(sections: tuple[Section, ...]) -> Iterator[Symbol]:
    for section in sections:
        if section.kind == SYMBOLS:
            names = sections[section.link].content
            for name, value, size, info, _, _ in struct.iter_unpack("<IIIBBH", section.content):
                yield Symbol(_text(names, name), value, size, info & 15)
