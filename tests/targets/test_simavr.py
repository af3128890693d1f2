"""The simulated chip: hand-counted cycles, the paced line, noise, and writes that must not be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import ThimbleError
from pipeline.hardware import Hardware
from pipeline.targets import simavr, toolchain
from pipeline.targets.protocol import Command
from pipeline.targets.simavr import Chip, Exchange
from pipeline.targets.toolchain import Size
from tests.comparing import equal
from tests.targets.conftest import (
    MODEL,
    expected,
    generate,
    load_hardware,
    model,
    needs_avr,
    on_avr,
)

pytestmark = [needs_avr, pytest.mark.usefixtures("no_host")]
IMAGE = bytes(range(100, 116))


def build(folder: Path, hardware: Hardware, source: str) -> tuple[Path, Size]:
    """Only the board's program: quicker than toolchain.build."""
    generated = generate(folder / "generated", hardware, source)
    return folder, toolchain.build(generated, folder, hardware)


def asm(*lines: str) -> str:
    text = "".join(f'"{line}\\n"' for line in lines)
    return f'__asm__ volatile({text} ::: "r0", "r1", "r24", "r25", "r30", "r31");'


CLEAR = "clr r1"
COUNTED = [
    (("nop",), 1),
    (("mul r24, r25", CLEAR), 3),
    (("muls r24, r25", CLEAR), 3),
    (("push r24", "pop r24"), 4),
    (("ldi r30, 0", "ldi r31, 1", "ld r24, Z"), 4),
    (("ldi r30, 0", "ldi r31, 1", "lpm r24, Z+"), 5),
    (("lds r24, 0x0100", "adiw r30, 1", "swap r24"), 5),
    (("ldi r24, 100", "1: dec r24", "brne 1b"), 1 + 100 * 3 - 1),
    (("ldi r24, 1", "ldi r25, 1", "cpse r24, r25", "lds r24, 0x0100"), 2 + 3),
    (("rcall 1f", "rjmp 2f", "1: ret", "2:"), 3 + 2 + 4),
    (("call 1f", "jmp 2f", "1: ret", "2:"), 4 + 3 + 4),
]


def measured(folder: Path, hardware: Hardware, shim: Path, source: str) -> Exchange:
    _, size = build(folder, hardware, source)
    with Chip(shim, folder / "firmware.elf", hardware, size.sections) as chip:
        return chip.ask(Command.INFER, IMAGE)[1]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, arduino: Hardware, shim: Path) -> Exchange:
    return measured(tmp_path_factory.mktemp("empty"), arduino, shim, model())


@pytest.mark.parametrize(("lines", "cycles"), COUNTED, ids=lambda v: str(v)[:30])
def test_cycles_are_those_of_the_instruction_set_manual(
    tmp_path: Path, arduino: Hardware, shim: Path, empty: Exchange, lines: list[str], cycles: int
) -> None:
    """In nn_invoke they count once, in nn_feed once a byte; in the latency the last byte's."""
    source = model(feed=on_avr(asm(*lines)), invoke=on_avr(asm(*lines) + asm(*lines)))
    done = measured(tmp_path, arduino, shim, source)
    assert done.invoke_cycles - empty.invoke_cycles == 2 * cycles
    assert done.feed_cycles - empty.feed_cycles == 16 * cycles
    assert done.latency_cycles - empty.latency_cycles == 3 * cycles


def test_waiting_for_the_line_is_in_no_figure(built: tuple[Path, Size], shim: Path) -> None:
    folder, size = built
    figures = set()
    for baud in (115_200, 1_000_000):
        hardware = load_hardware(baud=baud)
        for line in ("paced", "instant"):
            with Chip(shim, folder / "firmware.elf", hardware, size.sections, line=line) as chip:  # type: ignore[arg-type]
                _, done = chip.ask(Command.INFER, IMAGE)
                figures.add((done.feed_cycles, done.invoke_cycles))
                assert done.byte_cycles == (1360 if line == "paced" else 0)
                assert done.latency_cycles < 2000
    assert len(figures) == 1


@pytest.mark.parametrize(("baud", "byte_cycles"), [(9600, 16640), (115_200, 1360), (500_000, 320)])
def test_the_line_runs_at_the_configured_rate(
    tmp_path: Path, shim: Path, baud: int, byte_cycles: int
) -> None:
    """10 bits of 8 x (UBRR0 + 1) cycles, as the data sheet's table for 16 MHz with U2X0 has it."""
    hardware = load_hardware(baud=baud)
    assert measured(tmp_path, hardware, shim, model()).byte_cycles == byte_cycles


def test_power_on_garbage_is_really_there(tmp_path: Path, arduino: Hardware, shim: Path) -> None:
    """In memory that no start-up code sets, and in registers that no function sets either; no
    figure depends on it."""
    source = model(
        'static uint8_t nn_left[4] __attribute__((used, section(".noinit")));\n'
        '#ifdef __AVR__\n__attribute__((naked, used, section(".init0"))) static void keep(void) {'
        '__asm__ volatile("out 0x2A, r2");}\n#endif',  # GPIOR1, before anything has run
        invoke=on_avr("for (uint8_t i = 0; i < 4; i++) nn_arena[i] = nn_left[i];")
        + on_avr("nn_arena[4] = GPIOR1;"),
    )
    folder, size = build(tmp_path, arduino, source)
    memory, register, figures = set(), set(), set()
    for seed in range(5):
        with Chip(shim, folder / "firmware.elf", arduino, size.sections, seed=seed) as chip:
            reply, done = chip.ask(Command.INFER, IMAGE)
            memory.add(reply.payload[:4])
            register.add(reply.payload[4])
            figures.add((done.feed_cycles, done.invoke_cycles, done.latency_cycles))
    assert len(memory) == 5 and len(register) > 2 and len(figures) == 1


def run(folder: Path, size: Size, hardware: Hardware) -> None:
    simavr.run(folder, {"sections": size.sections}, hardware, np.full((3, 16), 7, np.uint8))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            model("static int8_t nn_weights[4] = {1, 2, 3, 4};", invoke="nn_weights[2]++;"),
            "constants or below its stack 1 times, first at 0x102",
        ),
        (
            model(invoke=on_avr("*(volatile uint8_t *)0x700 = 1;")),
            "constants or below its stack 1 times, first at 0x700",
        ),
        (
            model(feed="for (volatile uint16_t i = 0; i < 999; i++) {}"),
            "late for .* bytes of the line.*hardware.streams_input=false",
        ),
        (
            model(
                "static uint8_t nn_filler[2000];",
                feed="nn_filler[nn_arena[0]] += 1; nn_arena[2] = nn_filler[count];",
                invoke="volatile uint8_t deep[40]; for (uint8_t i = 0; i < 40; i++) deep[i] = i;"
                "nn_arena[1] = deep[nn_arena[0]];",
            ),
            r"a stack of \d+ B ran \d+ B into the statics",
        ),
        (model(invoke="for (;;) {}"), "gave no answer for 60 s"),
        (model(invoke=on_avr('__asm__ volatile("sleep");')), "sleeps"),
        (model(invoke="return NN_CORRUPT;"), "memory was overwritten"),
        (model(invoke="return NN_INCOMPLETE;"), "refused infer: incomplete"),
    ],
    ids=["constants", "below the stack", "late", "overlap", "silent", "sleep", "canary", "input"],
)
def test_what_a_firmware_must_not_do_is_one_line(
    tmp_path: Path, shim: Path, source: str, said: str
) -> None:
    slow = load_hardware(clock_hz=1_000_000, baud=9600)  # its 60 s of silence pass sooner
    folder, size = build(tmp_path, slow, source)
    with pytest.raises(ThimbleError, match=said):
        run(folder, size, slow)


@pytest.mark.ci
def test_a_firmware_that_is_waited_for_is_not_late(tmp_path: Path, shim: Path) -> None:
    """Every fourth byte takes it longer than three take on the line."""
    keeps = "nn_arena.bytes[8 + nn_position++] = *bytes++;"
    busy = "if (nn_position % 4 == 0) for (volatile uint16_t i = 0; i < 999; i++) {}"
    source = (MODEL / "model.c").read_text().replace(keeps, keeps + busy)
    images = np.random.default_rng(0).integers(0, 256, (3, 16)).astype(np.uint8)
    hardware = load_hardware(clock_hz=1_000_000, baud=9600, wait_bytes=4)
    folder, size = build(tmp_path, hardware, source)
    runs = simavr.run(folder, {"sections": size.sections}, hardware, images)
    equal(runs.outputs, expected(images))
    never = load_hardware(clock_hz=1_000_000, baud=9600)
    with pytest.raises(
        ThimbleError, match=r"late for .* bytes of the line.*hardware\.wait_bytes=N"
    ):
        simavr.run(folder, {"sections": size.sections}, never, images)
    other = load_hardware(clock_hz=1_000_000, baud=9600, wait_bytes=3)
    with pytest.raises(
        ThimbleError, match=r"within an input: was it built for another hardware\.wait"
    ):
        simavr.run(folder, {"sections": size.sections}, other, images)


def test_a_missing_simulator_names_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "cc"
    for said in (
        "simavr_shim.c:25:10: fatal error: simavr/sim_avr.h: No such file or directory",
        "/usr/bin/ld: cannot find -lelf: No such file or directory",
    ):
        compiler.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n")
        compiler.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(ThimbleError, match=r"simavr is not installed .*libsimavr-dev"):
            simavr.compile_shim(tmp_path)
    compiler.unlink()
    with pytest.raises(ThimbleError, match="cc is not installed"):
        simavr.compile_shim(tmp_path)


def test_a_file_that_is_no_firmware_is_one_line(
    tmp_path: Path, arduino: Hardware, shim: Path
) -> None:
    (tmp_path / "firmware.elf").write_bytes(b"not an ELF")
    with (
        Chip(shim, tmp_path / "firmware.elf", arduino, {}) as chip,
        pytest.raises(ThimbleError, match=r"the simulator ended: .*cannot load"),
    ):
        chip.exchange(b"")
