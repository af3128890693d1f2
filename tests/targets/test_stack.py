"""Stack bounds of opcodes and listings, counted by hand, and of programs, simulated."""

import struct
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import simavr, toolchain
from pipeline.targets.avr_stack import Bound, bound, return_bytes
from pipeline.targets.protocol import Command
from pipeline.targets.thumb_stack import Listing, interrupted
from pipeline.targets.thumb_stack import bound as thumb_bound
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


DROPPING_2 = (0xB78D, 0xB79E, 0x9602, 0xB60F, 0x94F8, 0xBF9E, 0xBE0F, 0xBF8D)
"""What gcc has after a call to take 2 bytes of arguments off the stack: ``adiw r24, 2``."""
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
        ((PUSH, PUSH, PUSH, *DROPPING_2, PUSH, END), 3),
        ((PUSH, PUSH, PUSH, *DROPPING_2_BY_R18, PUSH, END), 3),
        ((PUSH, *FRAME, sbiw_y(8), *SET_SP, 0x9628, *SET_SP, POP, PUSH, END), 9),
        # Y is saved, used for something else and restored inside a frame, as assembly may
        ((*FRAME, sbiw_y(6), *SET_SP, *USED_Y, 0x9626, *SET_SP, PUSH, END), 8),
        ((0xE0C0, 0xE0D0, *SET_SP, PUSH, END), 1),  # start-up code sets SP from constants
    ],
)
def test_bytes_of_small_programs(words: tuple[int, ...], expected: int) -> None:
    assert of(*words).bytes == expected
    assert of(PUSH, rcall(2), END, NOP, PUSH, RET) == Bound(4, ("start", "leaf"))


def test_return_addresses_of_more_flash_than_16_bits_reach() -> None:
    words = (rcall(0), rcall(1), END, PUSH, POP, RET)  # some bytes of stack, then a call
    program = struct.pack(f"<{len(words)}H", *words)
    uno, mega = (return_bytes(load_hardware(b).flash_bytes) for b in ("arduino", "arduino_mega"))
    assert (uno, mega) == (2, 3)
    assert [bound(program, {}, return_bytes=n).bytes for n in (uno, mega)] == [5, 7]


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
NESTED = Path(__file__).with_name("nested.c").read_text()


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


def listing(text: str) -> Listing:
    """Functions ``name:``, instructions ``address mnemonic operands``."""
    lines = []
    for line in text.strip().splitlines():
        words = line.split(maxsplit=2)
        if line.strip().endswith(":"):
            lines.append(("", line.strip()[:-1]))
        else:
            lines.append((words[0], "\t".join(words[1:])))
    shown = []
    for (address, rest), (following, _) in zip(lines, [*lines[1:], ("", "")], strict=True):
        shown.append(f" {address}:\t{rest}" if address else f"{following:>08} <{rest}>:")
    return Listing.parse("\n".join(shown))


def deepest(text: str) -> tuple[int, tuple[str, ...]]:
    found = thumb_bound(listing(text), "start")
    return found.bytes, found.path


LEAF = """
leaf:
40 push {r4, r5, lr}
42 pop {r4, r5, pc}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("10 bx lr", 0),
        ("10 push {r4-r6, lr}\n12 sub sp, #24\n14 add sp, #24\n16 pop {r4-r6, pc}", 40),
        (
            "10 stmdb sp!, {r4, r5, r6, r7, r8, r9, sl, fp, lr}\n14 sub.w sp, sp, #1024\n18 b.n 18",
            1060,
        ),
        ("10 vpush {d8-d9}\n14 vpop {d8-d9}\n18 bx lr", 16),
        ("10 vstmdb sp!, {s16}\n14 bx lr", 4),
        ("10 str.w lr, [sp, #-4]!\n14 ldr.w pc, [sp], #4", 4),
        ("10 strd r4, r5, [sp, #-16]!\n14 ldrd r4, r5, [sp], #16\n18 bx lr", 16),
        ("10 cbz r0, 16\n12 push {r4, lr}\n14 pop {r4, pc}\n16 sub sp, #4\n18 b.n 18", 8),
        ("10 push {r4, lr}\n12 popne {r4, pc}\n14 sub sp, #8\n16 b.n 16", 16),
        ("10 ldr r4, [pc, #4]\n12 add sp, r4\n14 bx lr\n16 nop\n18 .word 0xfffffff0", 16),
        ("10 movs r3, #137\n12 lsls r3, r3, #2\n14 negs r3, r3\n16 add sp, r3\n18 bx lr", 548),
        ("10 sub sp, #508\n12 movs r3, #127\n14 lsls r3, r3, #2\n16 add sp, r3\n18 bx lr", 508),
        ("10 sub sp, #16\n12 stmia sp, {r0, r1}\n14 ldmia sp, {r9, sl, fp}\n18 bx lr", 16),
        ("10 cmp sp, r0\n12 str r0, [sp, #8]\n14 mov r1, sp\n16 bx lr", 0),
    ],
)
def test_one_function(body: str, expected: int) -> None:
    assert deepest(f"start:\n{body}") == (expected, ("start",))


def test_calls_add_up_along_the_deepest_path() -> None:
    text = "start:\n10 push {lr}\n12 bl 20\n14 sub sp, #4\n16 bl 40\n18 b.n 18\n"
    text += "other:\n20 sub sp, #8\n22 add sp, #8\n24 bx lr" + LEAF
    assert deepest(text) == (4 + 4 + 12, ("start", "leaf"))
    # a tail jump goes on at the same depth
    assert deepest("start:\n10 push {r4}\n12 pop {r4}\n14 b.w 40" + LEAF)[0] == 12
    far = "10 push {r4, lr}\n12 bl 18\n14 .word 0x0\n18 bl 40\n1c cbz r0, 12\n1e pop {r4, pc}"
    assert deepest(f"start:\n{far}{LEAF}") == (8 + 12, ("start", "leaf")), "a far jump is no call"
    # what does not return has nothing after it
    text = "start:\n10 bl 20\n14 .word 0x6f6d656d\nforever:\n20 push {r0, r1}\n22 b.n 22"
    assert deepest(text) == (8, ("start", "forever"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("10 bl 10", "recursion start -> start"),
        ("10 push {r4}\n12 b.n 10", "start pushes in a loop"),
        ("10 bx r3", r"start jumps to a computed address \(bx r3\)"),
        ("10 blx r3", r"start jumps to a computed address \(blx r3\)"),
        ("10 tbb [pc, r0]", "start jumps to a computed address"),
        ("10 ldr pc, [r0, r1]", "start jumps to a computed address"),
        ("10 mov pc, r0", "start jumps to a computed address"),
        ("10 mov sp, r7\n12 bx lr", r"start sets SP to what is not known \(mov sp, r7\)"),
        ("10 sub.w sp, sp, r3\n14 bx lr", "start sets SP to what is not known"),
        ("10 push {r2, r3}\n12 pop {r2, r3}\n14 add sp, r3", "start sets SP to what is not known"),
        (
            "10 movs r3, #4\n12 bl 40\n16 add sp, r3\nleaf:\n40 bx lr",
            "start sets SP to what is not",
        ),
        ("10 movs r3, r2\n12 negs r3, r3\n14 add sp, r3", "start sets SP to what is not known"),
        ("10 ldr r4, [r0, #4]\n12 add sp, r4\n14 bx lr", "start sets SP to what is not known"),
        ("10 str r0, [sp, r1]!\n12 bx lr", "moves the stack pointer in an unknown way"),
        ("10 nop\n12 .word 0x0", "start runs into data"),
    ],
)
def test_no_bound_is_said(body: str, said: str) -> None:
    with pytest.raises(ThimbleError, match=f"the stack has no bound: .*{said}"):
        deepest(f"start:\n{body}")
    with pytest.raises(ThimbleError, match="no function port_reset"):
        thumb_bound(listing("start:\n10 bx lr"), "port_reset")


CARD = "port_card_interrupt:\n100 push {r4, lr}\n104 pop {r4, pc}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [("10 push {r4, lr}\n12 pop {r4, pc}", 8 + 36 + 8),
     ("10 push {r4, lr}\n12 vadd.f32 s0, s1, s2\n16 pop {r4, pc}", 8 + 36 + 72 + 8)],
)  # fmt: skip
def test_an_interrupt_comes_at_the_deepest_point(body: str, expected: int) -> None:
    """Its frame has the floating-point registers where the code uses them."""
    plain = interrupted(listing(f"start:\n{body}"), "start")
    found = interrupted(listing(f"start:\n{body}\n{CARD}"), "start")
    assert (plain.bytes, plain.path) == (8, ("start",))
    assert found.bytes == expected
    assert found.path == ("start", "(interrupt)", "port_card_interrupt")
