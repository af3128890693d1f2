"""Measure what activations of 0 save: kernels for an AVR skip the products of one
(firmware/kernels/avr/pixel.c.j2), so that an image decides how long it takes.

The program is patched to skip nothing: its products with 0 add 0, and every output stays the same.
What it takes then is what an image takes in which no activation is 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

TEST, REGISTER = 0x700F, 0x00F0
"""``andi r16, 15``: what reads activations, in any register, and leaves Z set for 0."""

BYTE = 0x2BAA
"""``or r26, r26``: what a byte of two activations is tested with."""

MASK, IF_ZERO, UNLESS_ZERO = 0xFC07, 0xF001, 0xF401
"""``breq`` and ``brne``, whose distance is in the other bits."""

NOP, JUMP = 0x0000, 0xC000
LOADED = 1


def no_skips(elf: bytes, functions: Iterable[tuple[int, int]]) -> tuple[bytes, int]:
    """``elf`` with each skip in ``functions`` (start and bytes) gone, and how many there were."""
    content, found, begins = bytearray(elf), 0, _program(elf)
    for start, size in functions:
        for at in range(begins + start, begins + start + size - 3, 2):
            test, branch = struct.unpack_from("<2H", content, at)
            tests = test & ~REGISTER == TEST or test == BYTE
            distance = branch >> 3 & 0x7F
            if tests and branch & MASK == IF_ZERO:
                instead = NOP  # as long as a branch that is not taken
            elif tests and branch & MASK == UNLESS_ZERO:
                instead = JUMP | (distance | -(distance & 0x40)) & 0xFFF  # as one that is
            else:
                continue
            struct.pack_into("<H", content, at + 2, instead)
            found += 1
    return bytes(content), found


def _program(elf: bytes) -> int:
    """Return the offset in the file at which address 0 of the flash is."""
    table, entry, number = (
        *struct.unpack_from("<I", elf, 28), *struct.unpack_from("<2H", elf, 42)
    )  # fmt: skip
    for at in range(table, table + entry * number, entry):
        kind, offset, _, address = struct.unpack_from("<4I", elf, at)
        if kind == LOADED and address == 0:
            return int(offset)
    return 0
