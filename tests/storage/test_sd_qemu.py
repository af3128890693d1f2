"""The driver of SD cards on SPI and QEMU's card, on an LM3S6965 with several cores."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.codegen import generate
from pipeline.codegen.card.image import Image
from pipeline.home import ROOT
from pipeline.strategies.swap import Swap
from tests.codegen.int8.support import frames
from tests.comparing import equal
from tests.storage.line import BLOCK, FIXTURE, READ, STORAGE, WRITE, Status
from tests.strategies.swap.nets import random_chain
from tests.targets.cortex_m import board_named
from tests.tiers import quick

BOARD = FIXTURE / "lm3s6965"
STREAMED = ("-DSTORAGE_STREAMED",)
PORT = ROOT / "firmware" / "ports" / "cortex_m"

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("arm-none-eabi-gcc", "qemu-system-arm"))),
    reason="the Arm compiler or QEMU is not installed: make setup",
)


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


def simulated(elf: Path, core: str, card: Path | None) -> None:
    drive = ["-drive", f"if=sd,format=raw,file={card}"] if card else []
    command = ["qemu-system-arm", "-M", "lm3s6965evb", "-cpu", core, "-kernel", str(elf),
               "-semihosting-config", "enable=on,target=native", "-display", "none",
               "-monitor", "none", "-serial", "none", *drive]  # fmt: skip
    subprocess.run(command, cwd=elf.parent, check=True, capture_output=True, timeout=500)


def exchanged(
    elf: Path, core: str, card: Path | None, transfers: list[tuple[int, int, bytes]]
) -> bytes:
    """What ``main.c`` says of ``transfers``: direction, first byte, and what is written or as much
    to be read."""
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
    for name, text in generate(graph, plan, board, {}).items():
        (tmp_path / name).write_text(text)
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
    equal(found, graph.outputs(given).reshape(-1))
