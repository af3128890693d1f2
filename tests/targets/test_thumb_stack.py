"""Stack bounds from disassembly, on listings small enough to count by hand."""

from __future__ import annotations

import pytest

from pipeline.errors import ThimbleError
from pipeline.targets.thumb_stack import Listing, bound, interrupted


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
    found = bound(listing(text), "start")
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


def test_a_tail_jump_goes_on_at_the_same_depth() -> None:
    assert deepest("start:\n10 push {r4}\n12 pop {r4}\n14 b.w 40" + LEAF)[0] == 12


def test_a_far_jump_is_no_call() -> None:
    text = (
        "start:\n10 push {r4, lr}\n12 bl 18\n14 .word 0x0\n18 bl 40\n1c cbz r0, 12\n1e pop {r4, pc}"
    )
    assert deepest(text + LEAF) == (8 + 12, ("start", "leaf"))


def test_what_does_not_return_has_nothing_after_it() -> None:
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


def test_a_missing_function_is_said() -> None:
    with pytest.raises(ThimbleError, match="no function port_reset"):
        bound(listing("start:\n10 bx lr"), "port_reset")


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
