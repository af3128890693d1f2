"""The Cortex-M4 cycle model: the manual's timings, the formula, and counts of a real run."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import FlashTiming
from pipeline.targets import machines, qemu, qemu_cycles
from pipeline.targets.harness import FIRMWARE
from tests.codegen.affine.configurations import network
from tests.codegen.affine.support import frames
from tests.targets.cortex_m import board_named, built, built_stand_in, needs_arm, simulated

MAIN = r"""
#include "cortex_m4_timing.h"
#include <stdio.h>
int main(void) {
    unsigned op, next;
    timing_t before = timing_plain(TIMING_DATA, 0);
    while (scanf("%x %x", &op, &next) == 2) {
        before = timing_of((uint16_t)op, (uint16_t)next, before);
        printf("%u\n", before.cycles);
    }
}
"""

TIMINGS = (
    (0x1840, 0, 1, "adds r0, r0, r1"),
    (0xFB21, 0x0302, 1, "smlad r3, r1, r2, r0"),
    (0xFB91, 0xF0F2, 7, "sdiv r0, r1, r2"),
    (0x6808, 0, 2, "ldr r0, [r1]"),
    (0x684A, 0, 1, "ldr r2, [r1, #4], after a load: paired"),
    (0x6813, 0, 2, "ldr r3, [r2], waits for the address"),
    (0x6008, 0, 1, "str r0, [r1]"),
    (0x5088, 0, 2, "str r0, [r1, r2]"),
    (0xF8D1, 0x0004, 2, "ldr.w r0, [r1, #4]"),
    (0xF811, 0x3B01, 1, "ldrb.w r3, [r1], #1, paired"),
    (0xF841, 0x0B04, 1, "str.w r0, [r1], #4"),
    (0xE9D1, 0x2300, 3, "ldrd r2, r3, [r1]"),
    (0xB510, 0, 3, "push {r4, lr}"),
    (0xE92D, 0x41F0, 7, "stmdb sp!, {r4-r8, lr}"),
    (0xBD10, 0, 3, "pop {r4, pc}"),
    (0xC90C, 0, 3, "ldmia r1!, {r2, r3}"),
    (0x4770, 0, 1, "bx lr, without the refill"),
    (0xEE27, 0x7A27, 1, "vmul.f32 s14, s14, s15"),
    (0xEEC7, 0x7A27, 14, "vdiv.f32 s15, s14, s15"),
)


def test_timings_are_the_manuals(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(MAIN)
    include = f"-I{FIRMWARE / 'simulators'}"
    command = ["cc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", include, "main.c", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    given = "".join(f"{op:x} {after:x}\n" for op, after, _, _ in TIMINGS)
    done = subprocess.run(
        [tmp_path / "main"], input=given, capture_output=True, text=True, check=True
    )
    found = [int(line) for line in done.stdout.split()]
    for got, (_, _, wanted, about) in zip(found, TIMINGS, strict=True):
        assert got == wanted, about


def test_cycles_are_the_formulas() -> None:
    board = replace(board_named("nucleo_l4r5zi"), flash_timing=FlashTiming(5, 8, 32, 32, 8))
    text = "100 120 10 3 1 1\n300 320 10 3 1 1\n200 220 10 3 2 0\n"
    found = qemu_cycles.cycles(text, board)
    assert found == {"low": 243, "median": 253, "high": 263, "instructions": 200}
    for damaged in ("", "1 2 3\n"):
        with pytest.raises(ThimbleError, match="counted nothing"):
            qemu_cycles.cycles(damaged, board)


def test_only_what_is_known_is_modelled() -> None:
    board = board_named("nucleo_l4r5zi")
    assert qemu_cycles.models(board, "QEMU emulator version 7.2.22 (Debian)")
    assert not qemu_cycles.models(board, "QEMU emulator version 10.0.2")
    assert not qemu_cycles.models(board, "")
    assert not qemu_cycles.models(board_named("nucleo_f767zi"), "QEMU emulator version 7.2.22")
    assert not qemu_cycles.models(replace(board, flash_timing=FlashTiming()), "version 7.2.22")


@needs_arm
def test_a_run_counts_the_same_twice(tmp_path: Path) -> None:
    graph, board = network(), board_named("nucleo_l4r5zi")
    size = built(tmp_path, graph, board)
    first, again = (simulated(tmp_path, graph, board, size, frames(graph, 3)) for _ in range(2))
    found = first.modelled_cycles
    assert found is not None and found == again.modelled_cycles
    assert found["instructions"] < found["low"] < found["median"] < found["high"]
    tick = machines.machine(board).tick_ns
    assert abs(found["instructions"] - int(np.median(first.instructions))) <= tick


LOOP = '#ifdef __ARM_ARCH_PROFILE\n__asm__ volatile({} ::: "r0", "r1", "cc");\n#endif\n'


@needs_arm
def test_a_loop_costs_what_the_manual_says(tmp_path: Path) -> None:
    """A thousand rounds of a load, two instructions and a taken branch: 2 + 1 + 1 + 1 + P."""
    board = board_named("nucleo_l4r5zi")
    begin = r"mov r1, sp\nmovs r0, #{}\nlsls r0, r0, #3"
    rounds = rf'"{begin}\n1: ldr r2, [r1]\nnop\nsubs r0, #1\nbne 1b"'
    counted = []
    for number in (125, 250):
        code = LOOP.format(rounds.format(number)).replace('"r1"', '"r1", "r2"')
        size = built_stand_in(tmp_path / f"{number}", board, invoke="\n" + code)
        images = np.zeros((1, 16), np.uint8)
        counted.append(qemu.run(tmp_path / f"{number}" / "build", vars(size), board, images))
    less, more = (runs.modelled_cycles or {} for runs in counted)
    grown = {name: more[name] - less[name] for name in less}
    assert grown == {"instructions": 4000, "low": 6000, "median": 7000, "high": 8000}
