"""``python -m tests.targets.timings``: the cycles that each core's model has for an instruction,
from the headers that the simulator is compiled with, as the table of docs/cycle-models.md."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from pipeline.targets.harness import FIRMWARE

CORES = ("cortex_m0plus", "cortex_m4", "cortex_m33", "cortex_m7")

MAIN = r"""
#include TIMING
#include <stdio.h>
int main(void) {
    unsigned op, next;
    timing_t before = timing_plain(TIMING_DATA, 0);
    while (scanf("%x %x", &op, &next) == 2) {
        before = timing_of((uint16_t)op, (uint16_t)next, before);
        printf("%u\n", before.pairs ? 0 : before.cycles);
    }
}
"""
"""Reads instructions, two halves each; writes the cycles of each after the one before."""

Code = tuple[int, int]
ADD, LOAD = (0x1840, 0), (0x6808, 0)
ROWS: tuple[tuple[str, tuple[Code, ...], bool], ...] = (
    ("addition, logic, shift, move (`adds r0, r0, r1`)", (ADD,), True),
    ("the same, beside one that it needs nothing of", (ADD, (0x1892, 0)), True),
    ("multiplication (`muls r0, r1`)", ((0x4348, 0),), True),
    ("two products added (`smlad`), long ones (`smlal`, `smmlar`)", ((0xFB21, 0x0302),), False),
    ("packing, widening, saturation (`sxtb16`, `pkhbt`, `ssat`)", ((0xFA2F, 0xF081),), False),
    ("division (`sdiv`)", ((0xFB91, 0xF0F2),), False),
    ("load (`ldr r0, [r1]`)", (LOAD,), True),
    ("load right after a load (`ldr r2, [r1, #4]`)", (LOAD, (0x684A, 0)), True),
    ("addition that needs what was just loaded", (LOAD, ADD), True),
    ("store (`str r0, [r1]`)", ((0x6008, 0),), True),
    ("store by register (`str r0, [r1, r2]`)", ((0x5088, 0),), True),
    ("two registers (`ldrd r2, r3, [r1]`)", ((0xE9D1, 0x2300),), False),
    ("*n* registers: of two (`ldmia r1!, {r2, r3}`)", ((0xC90C, 0),), True),
    ("return (`pop {r4, pc}`), without P", ((0xBD10, 0),), True),
    ("call (`bl`), without P", ((0xF000, 0xF800),), True),
    ("branch by register (`bx lr`), without P", ((0x4770, 0),), True),
    ("floating point (`vmul.f32`)", ((0xEE27, 0x7A27),), False),
    ("the same, multiply and add (`vmla.f32`)", ((0xEE07, 0x7A27),), False),
    ("the same, division (`vdiv.f32`)", ((0xEEC7, 0x7A27),), False),
)
"""What it is, its code with what is before it, whether a Cortex-M0+ has it."""


def compiled(header: str, folder: Path) -> Path:
    """The program of ``MAIN`` for a core's header."""
    (folder / "main.c").write_text(MAIN)
    include = (f"-I{FIRMWARE / 'simulators'}", f'-DTIMING="{header}"')
    command = ["cc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", *include, "main.c", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "main"


def cycles(program: Path, code: tuple[Code, ...]) -> list[int]:
    given = "".join(f"{op:x} {after:x}\n" for op, after in code)
    done = subprocess.run([program], input=given, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def table() -> list[str]:
    """Its lines, Markdown."""
    columns = []
    for core in CORES:
        with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
            program = compiled(f"{core}_timing.h", Path(folder))
            columns.append([cycles(program, code)[-1] for _, code, _ in ROWS])
    lines = [
        "| cycles of one instruction | M0+ | M4 | M33 | M7 |",
        "| --- | --- | --- | --- | --- |",
    ]
    for (name, _, small), (first, *others) in zip(ROWS, zip(*columns, strict=True), strict=True):
        found = [str(first) if small else "", *map(str, others)]
        lines.append(f"| {name} | {' | '.join(found)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
    sys.exit()
