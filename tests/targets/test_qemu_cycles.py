"""The cycle models of Cortex-M cores: timings, the formula, and counts of a real run.

``python -m tests.targets.test_qemu_cycles`` prints the cycles that each core's model has for an
instruction, from the headers that the simulator is compiled with, as docs/cycle-models.md has them.
"""

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import FlashTiming
from pipeline.home import ROOT
from pipeline.targets import qemu, qemu_cycles
from pipeline.targets.harness import FIRMWARE
from pipeline.targets.layers import of_functions
from tests.codegen.int8.support import frames, network
from tests.programs import said
from tests.targets.cortex_m import (
    ONE_A_CORE,
    board_named,
    built,
    built_stand_in,
    needs_arm,
    simulated,
)
from tests.tiers import quick

pytestmark = pytest.mark.usefixtures("compiled_once", "no_host")
M4 = (
    (0x6808, 0, 2, "ldr r0, [r1]"),
    (0x684A, 0, 1, "ldr r2, [r1, #4], after a load: paired"),
    (0x6813, 0, 2, "ldr r3, [r2], waits for the address"),
    (0xF8D1, 0x0004, 1, "ldr.w r0, [r1, #4], paired"),
    (0xF811, 0x3B01, 1, "ldrb.w r3, [r1], #1, paired"),
    (0xF841, 0x0B04, 1, "str.w r0, [r1], #4"),
    (0xB510, 0, 3, "push {r4, lr}"),
    (0xE92D, 0x41F0, 7, "stmdb sp!, {r4-r8, lr}"),
)
M0PLUS = ((0x6808, 0, 2, "ldr r0, [r1]"), (0x684A, 0, 2, "ldr r2, [r1, #4]: nothing is paired"),
          (0xB510, 0, 3, "push {r4, lr}"), (0xF3BF, 0x8F4F, 3, "dsb"))  # fmt: skip
M33 = (
    (0x6808, 0, 1, "ldr r0, [r1]"),
    (0x1840, 0, 2, "adds r0, r0, r1: uses what was just loaded"),
    (0x6808, 0, 1, "ldr r0, [r1]"),
    (0x1892, 0, 1, "adds r2, r2, r2: does not"),
    (0x6808, 0, 1, "ldr r0, [r1]"),
    (0xFB20, 0x2301, 2, "smlad r3, r0, r1, r2: does"),
    (0x6808, 0, 1, "ldr r0, [r1]"),
    (0x6010, 0, 2, "str r0, [r2]: does"),
)
M7 = (
    (0x1840, 0, 1, "adds r0, r0, r1"),
    (0x1892, 0, 0, "adds r2, r2, r2, at the same time"),
    (0x1892, 0, 1, "adds r2, r2, r2: two at once are the most"),
    (0x1892, 0, 1, "adds r2, r2, r2: needs the one before"),
    (0xFB21, 0x0302, 1, "smlad r3, r1, r2, r0: needs r2"),
    (0xFB25, 0x0406, 1, "smlad r4, r5, r6, r0: one multiplier"),
    (0x6829, 0, 0, "ldr r1, [r5], beside the multiplication"),
    (0x6869, 0, 1, "ldr r1, [r5, #4]"),
    (0x1849, 0, 2, "adds r1, r1, r1: waits for the load"),
    (0xBD10, 0, 3, "pop {r4, pc}: alone"),
)


@pytest.mark.parametrize(
    ("header", "timings"),
    [("cortex_m4", M4), ("cortex_m0plus", M0PLUS), ("cortex_m33", M33), ("cortex_m7", M7)],
)
def test_timings_are_the_models(
    header: str, timings: tuple[tuple[int, int, int, str], ...], tmp_path: Path
) -> None:
    """In a row; one instruction alone is in the documented table."""
    program = compiled(f"{header}_timing.h", tmp_path)
    found = listed_cycles(program, tuple((op, after) for op, after, _, _ in timings))
    for got, (_, _, wanted, about) in zip(found, timings, strict=True):
        assert got == wanted, about


def test_the_documented_table_is_the_models() -> None:
    text = (ROOT / "docs" / "cycle-models.md").read_text()
    assert "\n".join(table()) in text, "python -m tests.targets.test_qemu_cycles"


def test_cycles_are_the_formulas() -> None:
    board = replace(board_named("nucleo_l4r5zi"), flash_timing=FlashTiming(5, 8, 32, 32, 8))
    rows = ("100 120 0 10 3 1 0 1 0 0", "300 320 0 10 3 0 1 1 0 0", "200 220 0 10 3 1 1 0 0 0")
    text = "".join(f"{row} {row.replace('0 10', '0 20')}\n" for row in rows)
    found = qemu_cycles.cycles(text, board)
    assert found.pop("error_pct") == 12.3 and "NUCLEO-L4R5ZI" in found.pop("evidence")
    whole = {"compute_cycles": 273, "compute_instructions": 200}
    assert found == {"low": 243, "median": 253, "high": 263, "instructions": 200} | whole
    for other in (
        {"flash_timing": replace(board.flash_timing, wait_states=0)},
        {"weights_in": "sram"},
        {"cpu": "cortex-m33"},
    ):
        assert "error_pct" not in qemu_cycles.cycles(text, replace(board, **other))
    for damaged in ("", "1 2 3\n"):
        with pytest.raises(ThimbleError, match="counted nothing"):
            qemu_cycles.cycles(damaged, board)


def test_functions_have_the_cycles_of_the_median_inference() -> None:
    board = replace(board_named("nucleo_l4r5zi"), flash_timing=FlashTiming(5, 8, 32, 32, 8))
    code = {"late": (64, 8), "early": (32, 16), "empty": (32, 0)}
    assert qemu_cycles.ordered(code) == ["early", "late"]
    line = "{} 220 0 10 3 1 1 0 0 0  50 100 0 4 3 0 0 0 0 0  {} {} 0 0 0 0 0 0 0 0\n"
    each = [line.format(200, *late)[:-1] for late in ((0, 0), (9, 7), (9, 7))]
    text = "".join(f"{one} {one}\n" for one in each)
    found = qemu_cycles.cycles(text, board, code)
    assert found["functions"] == {"early": 100 + 2 * 4 + 3, "late": 7}, "of equals the second"
    with pytest.raises(ThimbleError, match="counted nothing"):
        qemu_cycles.cycles(text, board)


def test_only_what_is_known_is_modelled() -> None:
    board = board_named("nucleo_l4r5zi")
    assert qemu_cycles.models(board, "QEMU emulator version 7.2.22 (Debian)")
    assert not qemu_cycles.models(board, "QEMU emulator version 10.0.2")
    assert not qemu_cycles.models(board, "")
    other = replace(board, cpu="cortex-m55")
    assert not qemu_cycles.models(other, "QEMU emulator version 7.2.22")
    assert not qemu_cycles.models(replace(board, flash_timing=FlashTiming()), "version 7.2.22")


def test_each_core_adds_its_own() -> None:
    """Two waits a read, hidden or not; half of the pairs given back; reads beyond the chip."""
    text = " ".join(["100 120 8 10 3 1 7 1 2 4"] * 2)

    def band(name: str, **changes: object) -> tuple[int, ...]:
        found = qemu_cycles.cycles(text, board_named(name, **changes))
        return tuple(found[key] for key in ("low", "median", "high"))

    assert band("nucleo_g0b1re") == (137, 137, 151)  # 120 + 10 + 3 + 2 * (1 + 1), + 2 * 7
    f769 = board_named("stm32f769i_disco")
    rom, ram = f769.external("rom"), f769.external("ram")
    assert rom is not None and ram is not None
    outside = 2 * rom.read_cycles + 4 * ram.read_cycles
    assert outside > 0
    assert band("stm32f769i_disco") == tuple(n + outside + 9 * 7 for n in (120, 130, 144))
    assert band("nucleo_f767zi") == tuple(n + 9 * 7 for n in (120, 130, 144))


@needs_arm
@pytest.mark.parametrize("name", quick(1, ONE_A_CORE))
def test_every_core_has_cycles(name: str, tmp_path: Path) -> None:
    graph, board = network(), board_named(name)
    size = built(tmp_path, graph, board)
    runs = simulated(tmp_path, graph, board, size, frames(graph, 2))
    found = runs.modelled_cycles
    assert found is not None and 0 < found["low"] <= found["median"] <= found["high"]
    assert found["low"] > found["instructions"] / 2  # two at once are the most
    names = [op.name for op in graph.operators]
    layers = dict(of_functions(found["functions"], found["compute_cycles"], names))
    assert sum(layers.values()) == found["compute_cycles"] > found["median"]
    assert {"conv0", "rest"} <= set(layers)  # small kernels are in nn_invoke
    share = 0.4 if name == "nucleo_g0b1re" else 0.2  # there sums and pools are portable
    feeding = found["compute_cycles"] - found["median"]
    assert feeding < layers["rest"] < share * found["median"] + feeding
    assert ("error_pct" in found) == (name in ("nucleo_l4r5zi", "nucleo_u575zi"))


LOOP = '#ifdef __ARM_ARCH_PROFILE\n__asm__ volatile({} ::: "r0", "r1", "cc");\n#endif\n'


@pytest.mark.ci
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
    grown = {name: more[name] - less[name] for name in (*qemu_cycles.BAND, "instructions")}
    assert grown == {"instructions": 4000, "low": 6000, "median": 7000, "high": 8000}


CORES = ("cortex_m0plus", "cortex_m4", "cortex_m33", "cortex_m7")

MAIN = Path(__file__).with_name("timings.c").read_text()
"""Reads instructions, two halves each; writes the cycles of each after the one before."""

Code = tuple[int, int]
ADD, LOAD = (0x1840, 0), (0x6808, 0)
ROWS: tuple[tuple[str, tuple[Code, ...], bool], ...] = (
    ("addition, logic, shift, move (`adds r0, r0, r1`)", (ADD,), True),
    ("the same, beside an instruction that it doesn't depend on", (ADD, (0x1892, 0)), True),
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
"""Instructions, their code with what is before it, whether a Cortex-M0+ has them."""


def compiled(header: str, folder: Path) -> Path:
    """The program of ``MAIN`` for a core's header."""
    (folder / "main.c").write_text(MAIN)
    include = (f"-I{FIRMWARE / 'simulators'}", f'-DTIMING="{header}"')
    command = ["cc", "-std=gnu99", "-Wall", "-Wextra", "-Werror", *include, "main.c", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "main"


def listed_cycles(program: Path, code: tuple[Code, ...]) -> list[int]:
    given = "".join(f"{op:x} {after:x}\n" for op, after in code)
    return [int(line) for line in said([program], input=given).split()]


def table() -> list[str]:
    """Its lines, Markdown."""
    columns = []
    for core in CORES:
        with tempfile.TemporaryDirectory(prefix="thimble.") as folder:
            program = compiled(f"{core}_timing.h", Path(folder))
            columns.append([listed_cycles(program, code)[-1] for _, code, _ in ROWS])
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
