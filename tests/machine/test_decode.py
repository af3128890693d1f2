"""The table of instructions, and which bytes depend on which, against arithmetic."""

from collections.abc import Callable
from typing import Any

import capstone
import numpy as np
import pytest

from pipeline.machine import lanes
from pipeline.machine.decode import ALL, ALWAYS, LOGIC_FLAGS, READS_C, Row, row
from pipeline.machine.lanes import HALVES, LOWER, NONE, SAME, UPPER, UPWARD, WHOLE

WORD = 0xFFFFFFFF
MADE: dict[str, tuple[int, Callable[[int], int]]] = {
    "shifted up": (lanes.shifted(12), lambda x: x << 12),
    "down": (lanes.shifted(-8), lambda x: x >> 8),
    "down with the sign": (lanes.shifted(-20, fill=True), lambda x: (x - (x >> 31 << 32)) >> 20),
    "turned": (lanes.shifted(-24, turn=True), lambda x: x >> 24 | x << 8),
    "masked": (lanes.masked(0x00FF0010), lambda x: x & 0x00FF0010),
    "field": (lanes.field(6, 12, signed=False), lambda x: x >> 6 & 0xFFF),
    "signed field": (lanes.field(8, 8, signed=True), lambda x: (x >> 8 & 255 ^ 128) - 128),
    "sum": (UPWARD, lambda x: x * 0x1234567),
    "both": (lanes.then(lanes.shifted(8), HALVES), lambda x: x << 8),
}


@pytest.mark.parametrize("name", MADE)
def test_lanes_hold_every_byte_that_matters(name: str) -> None:
    """And a shift by whole bytes, a mask and a field no other."""
    matrix, made = MADE[name]
    rng, seen = np.random.default_rng(0), 0
    for x in rng.integers(0, 1 << 32, 300).tolist():
        for j in range(4):
            other = made(x ^ int(rng.integers(1, 256)) << 8 * j) ^ made(x)
            seen |= sum(1 << 4 * i + j for i in range(4) if (other & WORD) >> 8 * i & 255)
    assert seen & ~matrix == 0
    assert seen == matrix or name in ("sum", "both")


CODE: dict[str, tuple[str, dict[int, int], dict[str, Any]]] = {
    "1840": ("D", {0: UPWARD, 1: UPWARD}, {"writes": 1, "sets": ALL}),  # adds r0, r0, r1
    "4088": ("D", {0: WHOLE, 1: WHOLE}, {"writes": 1, "sets": LOGIC_FLAGS}),  # lsls r0, r1
    "4008": ("D", {0: SAME, 1: SAME}, {"writes": 1, "sets": LOGIC_FLAGS}),  # ands r0, r1
    "eb41 0002": ("D", {1: UPWARD, 2: UPWARD}, {"writes": 1, "flags": READS_C}),  # adc.w
    "f001 00ff": ("D", {1: lanes.masked(255)}, {"writes": 1}),  # and.w r0, r1, #255
    "ea41 2002": ("D", {1: SAME, 2: lanes.shifted(8)}, {"writes": 1}),  # orr.w r0, r1, r2, lsl #8
    "fa2f f091": ("D", {1: 0x8822}, {"writes": 1}),  # sxtb16 r0, r1, ror #8
    "eac1 0002": ("D", {1: SAME & 0xFF, 2: SAME & 0xFF00}, {"writes": 1}),  # pkhbt r0, r1, r2
    "fb11 f022": ("D", {1: UPPER, 2: LOWER}, {"writes": 1}),  # smultb r0, r1, r2
    "fb21 3002": ("D", {1: WHOLE, 2: WHOLE, 3: WHOLE}, {"writes": 1}),  # smlad
    "fb91 f0f2": ("D", {1: WHOLE, 2: WHOLE}, {"writes": 1, "variable": 1}),  # sdiv
    "f3c1 1007": ("D", {1: lanes.field(4, 8, signed=False)}, {"writes": 1}),  # ubfx r0, r1, #4, #8
    "f2c0 0001": ("D", {0: SAME & 0xFF}, {"writes": 1}),  # movt r0, #1
    "2a07": ("D", {2: UPWARD}, {"sets": ALL}),  # cmp r2, #7
    "d0fe": ("B", {}, {"condition": 0}),  # beq
    "b908": ("B", {0: WHOLE}, {}),  # cbnz r0
    "f000 f800": ("B", {}, {"writes": 1 << 14}),  # bl
    "4770": ("B", {14: WHOLE}, {}),  # bx lr
    "f851 0022": (
        "L",
        {},
        {"addresses": 6, "scale": 4, "listed": (0,)},
    ),  # ldr r0, [r1, r2, lsl #2]
    "f911 0b01": ("L", {}, {"addresses": 2, "writes": 2, "extends": 1, "listed": (0,)}),  # ldrsb
    "e9c1 2300": ("S", {}, {"addresses": 2, "listed": (2, 3)}),  # strd r2, r3, [r1]
    "b510": ("S", {}, {"addresses": 1 << 13, "writes": 1 << 13, "listed": (4, 14)}),  # push
    "bf00": ("D", {}, {}),  # nop
    "ed9f 7b21": ("L", {}, {"addresses": 1 << 15, "listed": (30, 31)}),  # vldr d7, [pc, #132]
    "ed2d 8b04": ("S", {}, {"addresses": 1 << 13, "writes": 1 << 13, "listed": (32, 33, 34, 35)}),
    "ec9d fa02": ("L", {}, {"addresses": 1 << 13, "listed": (46, 47)}),  # vldmia sp, {s30, s31}
    "ec90 eb20": ("U", {}, {}),  # vldmia r0, {d14-d29}: no Cortex-M has so many
    "ec90 0a20": ("U", {}, {}),  # vldmia r0, {s0-s31}: more than the plugin lists
    "4704": ("U", {}, {}),  # bxns r0
    "ee30 0a20": ("U", {}, {}),  # vadd.f32: nobody here says what it reads
    "e851 0f00": ("U", {}, {}),  # ldrex
}
"""Halves of an instruction in order: kind, sources, what else differs from a plain row."""


@pytest.mark.parametrize("halves", CODE)
def test_rows_are_the_instructions(halves: str) -> None:
    kind, sources, more = CODE[halves]
    found = decoded(halves)
    wanted = Row(0, found.size, found.text, kind)
    assert found.kind == kind, found.text
    if kind != "U":
        assert dict(found.sources) == sources, found.text
        names = ("condition", "sets", "flags", "variable", "extends", "writes", "addresses")
        for name in (*names, "scale", "listed"):
            assert getattr(found, name) == more.get(name, getattr(wanted, name)), (found.text, name)


def decoded(halves: str) -> Row:
    decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
    decoder.detail = True
    code = b"".join(bytes.fromhex(each)[::-1] for each in halves.split())
    return row(next(decoder.disasm(code, 0)))


def test_predicates_are_their_conditions() -> None:
    decoder = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
    decoder.detail = True
    rows = [row(each) for each in decoder.disasm(bytes.fromhex("0cbf0120c0430020"), 0)]
    assert [each.condition for each in rows] == [ALWAYS, 0, 1, ALWAYS]  # ite eq: mov, mvn; movs
    assert (rows[1].sources, rows[2].sources) == ((), ((0, SAME),)) and rows[3].sources == ()
    assert NONE not in dict(rows[2].sources).values()
