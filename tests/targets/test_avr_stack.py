"""The stack bound: hand-assembled opcodes, and compiled programs against the simulated chip."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import simavr, toolchain
from pipeline.targets.avr_stack import Bound, bound, return_bytes
from pipeline.targets.protocol import Command
from tests.targets.conftest import generate, load_hardware, model, needs_avr

pytestmark = pytest.mark.usefixtures("no_host")

PUSH, POP, RET, NOP = 0x920F, 0x900F, 0x9508, 0x0000
IJMP, ICALL, SEI = 0x9409, 0x9509, 0x9478
FRAME = (0xB7CD, 0xB7DE)  # in r28, SPL; in r29, SPH
SET_SP = (0xBFDE, 0xBFCD)  # out SPH, r29; out SPL, r28

SAVE_Y = (0x93CF, 0x93DF)  # push r28; push r29
RESTORE_Y = (0x91DF, 0x91CF)
USED_Y = (*SAVE_Y, 0xE0C0, 0xE0D0, *RESTORE_Y)


def rjmp(words: int) -> int:
    return 0xC000 | words & 0xFFF


def rcall(words: int) -> int:
    return 0xD000 | words & 0xFFF


def sbiw_y(value: int) -> int:
    return 0x9720 | (value & 0x30) << 2 | value & 0xF


def dropping(count: int) -> tuple[int, ...]:
    """What gcc has after a call to take ``count`` bytes of arguments off the stack."""
    adiw = 0x9600 | (count & 0x30) << 2 | count & 0xF
    return 0xB78D, 0xB79E, adiw, 0xB60F, 0x94F8, 0xBF9E, 0xBE0F, 0xBF8D


DROPPING_2_BY_R18 = (0xB72D, 0xB73E, 0x5F2E, 0x4F3F, 0xB60F, 0x94F8, 0xBF3E, 0xBE0F, 0xBF2D)
"""The same by ``subi r18, -2; sbci r19, -1``."""


def of(*words: int) -> Bound:
    return bound(struct.pack(f"<{len(words)}H", *words), {0: "start", 8: "leaf"})


END = rjmp(-1)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((END,), 0),
        ((PUSH, PUSH, POP, PUSH, END), 2),
        ((rcall(0), END), 2),  # gcc's two bytes
        ((rcall(1), END, PUSH, POP, RET), 3),
        ((rcall(2), rcall(1), END, PUSH, POP, RET), 3),
        ((0x940E, 3, END, PUSH, rcall(1), RET, PUSH, RET), 6),  # call 3; push; rcall
        ((0xF009, PUSH, END), 1),  # breq over a push: the worse way counts
        ((0x1312, PUSH, END), 1),  # cpse over a push
        ((0xFD00, 0x940E, 4, END, RET), 2),  # sbrc over a call of two words
        ((*FRAME, sbiw_y(20), *SET_SP, PUSH, END), 21),
        ((*FRAME, 0x52CC, 0x40D1, *SET_SP, END), 0x12C),  # subi sbci: Y -= 300
        ((*FRAME, 0x54C0, 0x09D1, *SET_SP, END), 0x40),  # subi; sbc r29, r1: Y -= 64
        ((PUSH, PUSH, PUSH, *dropping(2), PUSH, END), 3),
        ((PUSH, PUSH, PUSH, *DROPPING_2_BY_R18, PUSH, END), 3),
        ((PUSH, *FRAME, sbiw_y(8), *SET_SP, 0x9628, *SET_SP, POP, PUSH, END), 9),
        # Y is saved, used for something else and restored inside a frame, as assembly may
        ((*FRAME, sbiw_y(6), *SET_SP, *USED_Y, 0x9626, *SET_SP, PUSH, END), 8),
        ((0xE0C0, 0xE0D0, *SET_SP, PUSH, END), 1),  # start-up code sets SP from constants
    ],
)
def test_bytes_of_small_programs(words: tuple[int, ...], expected: int) -> None:
    assert of(*words).bytes == expected


def test_return_addresses_of_more_flash_than_16_bits_reach() -> None:
    words = (rcall(0), rcall(1), END, PUSH, POP, RET)  # some bytes of stack, then a call
    program = struct.pack(f"<{len(words)}H", *words)
    uno, mega = (return_bytes(load_hardware(b).flash_bytes) for b in ("arduino", "arduino_mega"))
    assert (uno, mega) == (2, 3)
    assert [bound(program, {}, return_bytes=n).bytes for n in (uno, mega)] == [5, 7]


def test_the_path_names_the_calls() -> None:
    found = of(PUSH, rcall(2), END, NOP, PUSH, RET)
    assert found == Bound(4, ("start", "leaf"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((rcall(1), END, rcall(-1), RET), "recursion"),
        ((rcall(-1),), "recursion start -> start"),
        ((IJMP,), "computed address .ijmp"),
        ((ICALL,), "computed address .icall"),
        ((SEI, END), "interrupts"),
        ((PUSH, rjmp(-2)), "pushes in a loop"),
        ((PUSH, *SET_SP, END), "sets SP to what is not known"),
        ((*FRAME, 0xE0C0, PUSH, *SET_SP, END), "sets SP to what is not known"),  # ldi r28
        ((*FRAME, *SAVE_Y, POP, POP, 0xE0C0, PUSH, PUSH, *RESTORE_Y, PUSH, *SET_SP, END), "SP to"),
        ((NOP,), "runs out of its flash"),
    ],
)
def test_programs_without_a_bound_are_refused(words: tuple[int, ...], said: str) -> None:
    with pytest.raises(ThimbleError, match=said):
        of(*words)


FRAMED = """
__attribute__((noinline)) static void work(uint8_t seed) {
    volatile uint8_t local[%d];
    for (uint16_t i = 0; i < sizeof local; i++) local[i] = (uint8_t)(seed + i);
    nn_arena[1] = local[seed %% sizeof local];
}
"""
NESTED = """
__attribute__((noinline)) static uint8_t leaf(uint8_t a) {
    volatile uint8_t kept[5] = {a, a, a, a, a};
    return kept[a % 5];
}
__attribute__((noinline)) static uint8_t middle(uint8_t a, uint8_t b) {
    return (uint8_t)(leaf(a) + leaf(b) + a + b);
}
__attribute__((noinline)) static void work(uint8_t seed) {
    for (uint8_t i = 0; i < 3; i++) nn_arena[2] += middle(seed, i) + middle(i, seed);
}
"""


@needs_avr
@pytest.mark.parametrize("body", [FRAMED % 3, FRAMED % 60, FRAMED % 700, NESTED])
def test_the_bound_is_what_the_simulated_chip_reaches(
    tmp_path: Path, arduino: Hardware, shim: Path, body: str
) -> None:
    folder = generate(tmp_path / "generated", arduino, model(body, invoke="work(nn_arena[0]);"))
    size = toolchain.build(folder, tmp_path, arduino)
    with simavr.Chip(shim, tmp_path / "firmware.elf", arduino, size.sections) as chip:
        _, done = chip.ask(Command.INFER, bytes(range(16)))
    assert done.stack_bytes == size.stack_bound_bytes
    assert "work" in size.stack_path or "leaf" in size.stack_path


@needs_avr
def test_the_painted_stack_agrees_with_the_stack_pointer(
    built: tuple[Path, toolchain.Size], arduino: Hardware
) -> None:
    images = np.full((2, 16), 200, np.uint8)
    sections = {"sections": built[1].sections}
    runs = simavr.run(built[0], sections, arduino, images)
    assert runs.painted_stack_bytes == runs.stack_bytes == built[1].stack_bound_bytes
    assert runs.stack_bytes <= 16
