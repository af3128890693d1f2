"""The driver of SD cards on SPI: with QEMU's card, on an LM3S6965 with several cores, and on a
simulated ATmega328P, whose SPI takes the time that SPCR sets."""

import struct
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.card.image import Image
from pipeline.codegen.generate import STORAGE as FILES
from pipeline.hardware import Hardware
from pipeline.home import ROOT
from pipeline.strategies.swap import Swap
from pipeline.targets import card, toolchain
from pipeline.targets.harness import harness_sources
from pipeline.targets.protocol import Command
from pipeline.targets.simavr import Chip, Exchange
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.programs import written
from tests.storage.test_sd_card import BLOCK, FIXTURE, READ, STORAGE, WRITE, Status
from tests.strategies.swap.nets import random_chain
from tests.targets.conftest import MODEL, load_hardware, model, needs_avr, on_avr
from tests.targets.conftest import shim as shim  # a fixture
from tests.targets.cortex_m import board_named, needs_arm
from tests.tiers import quick

BOARD = FIXTURE / "lm3s6965"
STREAMED = ("-DSTORAGE_STREAMED",)
PORT = ROOT / "firmware" / "ports" / "cortex_m"

pytestmark = [needs_arm, needs_avr]


def program(folder: Path, core: str, sources: Iterable[Path], *flags: str) -> Path:
    out = folder / "program.elf"
    command = ["arm-none-eabi-gcc", f"-mcpu={core}", "-mthumb", "-std=gnu99", "-O2", "-Wall",
               "-Wextra", "-Werror", "-nostartfiles", "-specs=nosys.specs", "-DSTORAGE_SD",
               "-DSTORAGE_POLLED", *flags, f"-I{BOARD}", f"-I{PORT}", f"-I{STORAGE}",
               f"-T{BOARD / 'link.ld'}", *map(str, sources), "-o", str(out)]  # fmt: skip
    subprocess.run(command, check=True)
    return out


def mover(folder: Path, core: str, *flags: str) -> Path:
    return program(folder, core, [*STORAGE.glob("s*.c"), BOARD / "main.c"], *flags)


def simulation(elf: Path, core: str, card: Path | None = None) -> list[str]:
    """The command that runs it."""
    drive = ["-drive", f"if=sd,format=raw,file={card}"] if card else []
    return ["qemu-system-arm", "-M", "lm3s6965evb", "-cpu", core, "-kernel", str(elf),
            "-semihosting-config", "enable=on,target=native", "-display", "none",
            "-monitor", "none", "-serial", "none", *drive]  # fmt: skip


def simulated(elf: Path, core: str, card: Path | None) -> None:
    command = simulation(elf, core, card)
    subprocess.run(command, cwd=elf.parent, check=True, capture_output=True, timeout=500)


def exchanged(
    elf: Path, core: str, card: Path | None, transfers: list[tuple[int, int, bytes]]
) -> bytes:
    """Return what ``main.c`` says of ``transfers``: direction, first byte, content or length."""
    asked = b"".join(
        struct.pack("<3I", direction, at, len(content)) + (content if direction == WRITE else b"")
        for direction, at, content in transfers
    )
    (elf.parent / "transfers").write_bytes(asked)
    simulated(elf, core, card)
    return (elf.parent / "done").read_bytes()


@pytest.mark.parametrize(
    ("core", "gigabytes", "flags"),
    quick(1, [("cortex-m3", 0, STREAMED), ("cortex-m7", 4, ()), ("cortex-m4", 4, STREAMED)], ci=1),
)
def test_reads_and_writes_the_card_that_qemu_simulates(
    tmp_path: Path, core: str, gigabytes: int, flags: tuple[str, ...]
) -> None:
    """Up to 2 GB it counts bytes, from there on blocks."""
    rng = np.random.default_rng(0)
    blocks = gigabytes << 21 or 2048
    content, new = rng.bytes(64 * BLOCK), rng.bytes(8 * BLOCK + 77)
    image = tmp_path / "card.img"
    image.write_bytes(content)
    with image.open("r+b") as file:
        file.truncate(blocks * BLOCK)
    last = min(blocks, (1 << 32) // BLOCK) * BLOCK - BLOCK
    told = exchanged(
        mover(tmp_path, core, *flags), core, image,
        [
            (READ, 0, bytes(BLOCK)),
            (READ, 3 * BLOCK + 5, bytes(20 * BLOCK)),
            (WRITE, 7 * BLOCK + 400, new),
            (READ, 6 * BLOCK, bytes(12 * BLOCK)),
            (WRITE, last, new[:BLOCK]),
            (READ, last, bytes(BLOCK)),
        ],
    )  # fmt: skip
    changed = bytearray(content)
    changed[7 * BLOCK + 400 : 7 * BLOCK + 400 + len(new)] = new
    ok = struct.pack("<I", Status.OK)
    found = [content[:BLOCK], content[3 * BLOCK + 5 :][: 20 * BLOCK], b"",
             bytes(changed[6 * BLOCK : 18 * BLOCK]), b"", new[:BLOCK]]  # fmt: skip
    right = told == struct.pack("<II", Status.OK, blocks) + b"".join(ok + each for each in found)
    assert right
    with image.open("rb") as file:
        assert bool(file.read(len(changed)) == changed)


def test_says_when_there_is_no_card(tmp_path: Path) -> None:
    told = exchanged(mover(tmp_path, "cortex-m3"), "cortex-m3", None, [(READ, 0, bytes(BLOCK))])
    status, blocks, transfer = struct.unpack_from("<3I", told)
    assert (status, blocks, transfer) == (Status.FAILED, 0, Status.FAILED)


@pytest.mark.ci
@pytest.mark.parametrize("flags", [(), STREAMED])
def test_a_network_swaps_with_the_card_that_qemu_simulates(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    graph = random_chain(9)
    board = replace(board_named("stm32f746g_sd"), sram_bytes=8192, stack_reserve_bytes=4096)
    board = replace(board, card=replace(board.card, line_bytes=1))  # no DMA: the core moves bytes
    plan = Swap().plan(graph, board)
    written(tmp_path, generate(graph, plan, board, {}))
    image = Image(graph, plan)
    image.write(tmp_path / "card.img")
    with (tmp_path / "card.img").open("r+b") as file:
        file.truncate(1 << (image.blocks * BLOCK - 1).bit_length())  # QEMU wants a power of two
    given = frames(graph, 3)
    (tmp_path / "frames").write_bytes(given.astype(np.int8).tobytes())
    sources = [*tmp_path.glob("*.c"), STORAGE / "sd_device.c", BOARD / "network.c"]
    more = ("-ffunction-sections", "-Wl,--gc-sections", f"-I{tmp_path}")
    elf = program(tmp_path, "cortex-m7", sources, *more, *flags)
    simulated(elf, "cortex-m7", tmp_path / "card.img")
    found = np.frombuffer((tmp_path / "outputs").read_bytes(), np.int8)
    equal(found, graph.evaluate(given).reshape(-1))


CONTENT = np.random.default_rng(1).bytes(64 * BLOCK)
PASS = "SPCR = _BV(SPE) | _BV(MSTR){}; SPSR = {}; SPDR = 0x55; while (!(SPSR & _BV(SPIF))) {{ }}"

TIMED = Path(__file__).with_name("timed.c").read_text()
INVOKE = (
    on_avr(
        "uint16_t *out = (uint16_t *)(void *)nn_arena;"
        "if (storage_open() != STORAGE_OK) return NN_CORRUPT;"
        "out[0] = timed(STORAGE_READ, 512); out[1] = timed(STORAGE_READ, 1024);"
        "out[2] = timed(STORAGE_WRITE, 512);"
    )
    + "nn_memory[0] = 0;"
)


@pytest.fixture(scope="module")
def uno() -> Hardware:
    return load_hardware("arduino_sd", baud=115200)


def run(folder: Path, shim: Path, hardware: Hardware, source: str) -> tuple[bytes, Exchange]:
    """Run nn_invoke of ``source``; return what it leaves in the first bytes of the arena."""
    files = {**harness_sources(hardware, swaps=True), "model.c": source}
    files |= {name: (STORAGE / name).read_text() for name in FILES}
    files |= {"model.h": (MODEL / "model.h").read_text()}
    size = toolchain.build(written(folder / "generated", files), folder, hardware)
    (folder / card.NAME).write_bytes(CONTENT)
    inserted = card.beside(folder)
    with Chip(shim, folder / "firmware.elf", hardware, size.sections, inserted=inserted) as chip:
        reply, done = chip.ask(Command.INFER, bytes(16))
    return reply.payload, done


@pytest.mark.ci
def test_a_byte_takes_what_spcr_says(tmp_path: Path, uno: Hardware, shim: Path) -> None:
    """Eight clocks: of a half, and of a 128th of the core's; the loop looks every 4 or 5 cycles."""
    taken = []
    for name, (rate, double) in {"slow": (" | 3", 0), "fast": ("", 1)}.items():
        source = model(invoke=on_avr(PASS.format(rate, double)))
        taken.append(run(tmp_path / name, shim, uno, source)[1].invoke_cycles)
    slow, fast = taken
    assert abs(slow - fast - 8 * (128 - 2)) <= 5


def test_blocks_take_what_the_board_says(tmp_path: Path, uno: Hardware, shim: Path) -> None:
    """Within 3 % of a block; a command has some bytes of its own besides the card's time."""
    payload, _ = run(tmp_path, shim, uno, model(globals=TIMED, invoke=INVOKE))
    read, two, written = (64 * n for n in np.frombuffer(payload, "<u2").tolist())
    assert min(read, two, written) > 0
    block = two - read
    says = 512 / uno.card.read_bytes_per_s * uno.clock_hz + card.cycles(uno)[1]
    assert abs(block - says) < 0.03 * says
    reading, writing = read - block, written - block
    assert card.cycles(uno)[0] < reading < 1.3 * card.cycles(uno)[0]
    assert card.cycles(uno)[2] < writing < 1.3 * card.cycles(uno)[2]
