"""The driver of SD cards on SPI and QEMU's card, on an LM3S6965 with several cores."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pipeline.home import ROOT
from tests.storage.line import BLOCK, FIXTURE, READ, STORAGE, WRITE, Status
from tests.tiers import quick

BOARD = FIXTURE / "lm3s6965"
PORT = ROOT / "firmware" / "ports" / "cortex_m"

pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, ("arm-none-eabi-gcc", "qemu-system-arm"))),
    reason="the Arm compiler or QEMU is not installed: make setup",
)


def program(folder: Path, core: str, *flags: str) -> Path:
    sources = [*STORAGE.glob("s*.c"), BOARD / "main.c"]
    out = folder / "program.elf"
    command = ["arm-none-eabi-gcc", f"-mcpu={core}", "-mthumb", "-std=gnu99", "-O2", "-Wall",
               "-Wextra", "-Werror", "-nostartfiles", "-DSTORAGE_SD", *flags, f"-I{BOARD}",
               f"-I{PORT}", f"-I{STORAGE}", f"-T{BOARD / 'link.ld'}", *map(str, sources),
               "-o", str(out)]  # fmt: skip
    subprocess.run(command, check=True)
    return out


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
    drive = ["-drive", f"if=sd,format=raw,file={card}"] if card else []
    command = ["qemu-system-arm", "-M", "lm3s6965evb", "-cpu", core, "-kernel", str(elf),
               "-semihosting-config", "enable=on,target=native", "-display", "none",
               "-monitor", "none", "-serial", "none", *drive]  # fmt: skip
    subprocess.run(command, cwd=elf.parent, check=True, capture_output=True, timeout=120)
    return (elf.parent / "done").read_bytes()


@pytest.mark.parametrize(
    ("core", "gigabytes", "flags"),
    quick(
        1,
        [
            ("cortex-m3", 0, ("-DSTORAGE_STREAMED",)),
            ("cortex-m7", 4, ()),
            ("cortex-m4", 4, ("-DSTORAGE_STREAMED",)),
            ("cortex-m33", 0, ()),
        ],
        ci=1,
    ),
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
        program(tmp_path, core, *flags), core, image,
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
    told = exchanged(program(tmp_path, "cortex-m3"), "cortex-m3", None, [(READ, 0, bytes(BLOCK))])
    status, blocks, transfer = struct.unpack_from("<3I", told)
    assert (status, blocks, transfer) == (Status.FAILED, 0, Status.FAILED)
